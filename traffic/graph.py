"""A workload as a graph of operations, in the manner of GOAL and Chakra traces.

An operation is one message between two ranks (a rank is a host). It starts when
all operations it comes `after` are over, and not before its time. "Over" is
seen from the rank that waits: for the operation's own sender it is the
completion (acknowledged), for its receiver the delivery (the bytes are in
memory).

Plain data: printable, countable, testable without a fabric. The RNIC executes
it, so that no Python runs between one packet and the next.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import networkx as nx


class Verb(StrEnum):
    """What an operation does."""

    WRITE = "write"
    SEND = "send"


@dataclass(frozen=True)
class Operation:
    """One message. Its `id` is its place in the graph."""

    id: int
    verb: Verb
    src: str
    dst: str
    size_bytes: int
    flow: str
    """The flow it belongs to: one row of the results."""
    not_before_ns: int = 0
    after: tuple[int, ...] = ()
    priority: int | None = None
    """Traffic class asked for; None: the NIC's own."""


@dataclass(frozen=True)
class Flow:
    """All operations of one pair in one traffic entry, in order."""

    name: str
    traffic: str
    """Name of the entry in the spec's `traffic:` it comes from."""
    src: str
    dst: str
    verb: Verb
    operations: tuple[int, ...]


@dataclass(frozen=True)
class OperationGraph:
    """A workload: operations in order of id, and the flows they form."""

    operations: tuple[Operation, ...] = ()
    flows: tuple[Flow, ...] = ()

    def __add__(self, other: OperationGraph) -> OperationGraph:
        """Both workloads, side by side."""
        shift = len(self.operations)
        moved = tuple(
            Operation(
                **{
                    **vars(operation),
                    "id": operation.id + shift,
                    "after": tuple(i + shift for i in operation.after),
                }
            )
            for operation in other.operations
        )
        flows = tuple(
            Flow(**{**vars(flow), "operations": tuple(i + shift for i in flow.operations)})
            for flow in other.flows
        )
        return OperationGraph(self.operations + moved, self.flows + flows)

    def bytes_between(self, src: str, dst: str) -> int:
        return sum(o.size_bytes for o in self.operations if (o.src, o.dst) == (src, dst))

    def dependencies(self) -> nx.DiGraph:
        """Edges from each operation to those that wait for it."""
        graph = nx.DiGraph()
        graph.add_nodes_from(operation.id for operation in self.operations)
        graph.add_edges_from((i, o.id) for o in self.operations for i in o.after)
        return graph


def together(graphs: Iterable[OperationGraph]) -> OperationGraph:
    """All of them side by side."""
    return sum(graphs, OperationGraph())
