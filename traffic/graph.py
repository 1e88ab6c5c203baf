"""A workload as a graph of operations, like GOAL and Chakra traces.

An operation is one message between two ranks (a rank is a host), or work that occupies one rank for
some time. It starts when all operations that it comes `after` are over, and not before its time.
When an operation is over depends on the rank that waits for it. For the rank that sent it, it is
over when it is completed (acknowledged). For the rank that receives it, it is over when it is
delivered (the bytes are in memory). An operation that could only start too late is skipped, and so
are all operations that come after it. Work may need a device, which serves one operation after
another.

A collective over a thousand ranks has millions of operations. They are the rows of a table with
one numpy array per column. Values that all operations of a flow share are stored in the flow. A
single row is read as an `Operation`:

    flows          a   a   a   b   b        a flow's operations are consecutive
    operations     0   1   2   3   4
    size_bytes    10  10  10  99  99
    not_before_ns  0   0   0   0   0
    earlier, later     (0,1) (1,2)    (3,4)     1 comes after 0, 2 after 1, 4 after 3

A request is what an application waits for. It is one message, or several messages of which each
causes the next, such as the command, the data and the response of an I/O. A workload in which only
the total time matters, such as a collective, has no requests:

    begins, ends       (0,0) (1,1) ...          here each message is a request of its own
    asks, carries      the kind of request i, and its bytes; by default a message and its bytes

The flows of a connection share a pair of queue pairs, in both directions. Every other flow has a
pair of its own.

Each rank of a job has a buffer, and a message may carry a part of it. `src_offset` is the place of
this part in the sender's buffer. `dst_offset` is its place in the receiver's buffer, or
`reduce_offset` if the receiver adds it there, as float32s. Other messages have memory of their own
at both ends.

The graph is plain data, which can be printed, counted and tested without a fabric. The NIC in the
core executes it, so that no Python runs between two packets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from traffic.flow_columns import FlowColumns
from traffic.job import Job, Step
from traffic.verb import Verb

if TYPE_CHECKING:
    import networkx as nx

NOWHERE = -1
"""The offset of messages that are not part of a job's buffer."""

LONGEST_MESSAGE_BYTES = 2**31
"""The limit of RDMA."""
LONGEST_WORK_NS = 2**62 // 1000
"""53 days: as long as the core's 64-bit picoseconds can hold and still add."""

Column = NDArray[np.int64]


class Asks(IntEnum):
    """The kind of an application's request."""

    MESSAGE = 0
    READ = 1
    """An I/O that brings data from a drive."""
    WRITE = 2
    NOTHING = 3
    """The request was skipped."""
    PROMPT = 4
    """A prompt, from its arrival to its first token."""
    KV_TRANSFER = 5
    """Part of a prompt: its KV cache, from the first message to the last byte."""
    KV_WAIT = 6
    """Part of a prompt: from the end of its prefill until its KV cache is complete."""

    @property
    def is_part(self) -> bool:
        """Whether the request is only a part of another one."""
        return self in (Asks.KV_TRANSFER, Asks.KV_WAIT)


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
    lasts_ns: int = 0
    """The duration of work."""


@dataclass(frozen=True)
class Flow:
    """All operations of one pair in one traffic entry, in order."""

    name: str
    traffic: str
    """The name of its entry in the spec's `traffic:`."""
    src: str
    dst: str
    verb: Verb
    operations: range
    priority: int | None = None
    """Traffic class asked for; None: the NIC's own."""
    device: str | None = None
    """The device that its work needs, for one operation at a time; None: it needs no device."""
    shares: str | None = None
    """The name of the connection that it shares; None: it has a connection of its own."""

    @property
    def connection(self) -> str:
        """Name of its connection."""
        return self.shares or self.name

    @property
    def bytes_from(self) -> str:
        """The host whose memory the bytes are read from."""
        return self.dst if self.verb.fetches else self.src

    @property
    def bytes_to(self) -> str:
        """The host whose memory they are written to."""
        return self.src if self.verb.fetches else self.dst


def _no_rows() -> Column:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class OperationGraph:
    """A workload: the flows, in order, and the table of their operations.

    A column that is left out has the default for every operation: it may start at once, takes no
    time, and uses no buffer of a job.
    """

    flows: tuple[Flow, ...] = ()
    size_bytes: Column = field(default_factory=_no_rows)
    not_before_ns: Column = field(default_factory=_no_rows)
    earlier: Column = field(default_factory=_no_rows)
    later: Column = field(default_factory=_no_rows)
    """Operation `later[i]` waits for `earlier[i]`; in order of `later`."""
    begins: Column = field(default_factory=_no_rows)
    ends: Column = field(default_factory=_no_rows)
    """Request i lasts from the start of operation `begins[i]` until `ends[i]` is delivered."""
    asks: Column = field(default_factory=_no_rows)
    """The kind of request i, as in `Asks`; left out: a message."""
    carries: Column = field(default_factory=_no_rows)
    """The bytes of request i; left out: those of its first operation."""
    not_after_ns: Column = field(default_factory=_no_rows)
    """An operation that could only start later is skipped; 0: it is never skipped."""
    lasts_ns: Column = field(default_factory=_no_rows)
    """The duration of work."""
    busy_ps: Column = field(default_factory=_no_rows)
    """Of work: how long it occupies the flow's device, before `lasts_ns` begins."""
    src_offset: Column = field(default_factory=_no_rows)
    dst_offset: Column = field(default_factory=_no_rows)
    reduce_offset: Column = field(default_factory=_no_rows)
    """Offsets in the buffers of the flow's job, or NOWHERE."""
    jobs: tuple[Job, ...] = ()
    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        for name, value in _LEFT_OUT.items():
            if len(getattr(self, name)) != len(self.size_bytes):
                object.__setattr__(self, name, np.full(len(self.size_bytes), value))
        if len(self.asks) != len(self.begins):
            object.__setattr__(self, "asks", np.full(len(self.begins), int(Asks.MESSAGE)))
        if len(self.carries) != len(self.begins):
            object.__setattr__(self, "carries", self.size_bytes[self.begins])

    @property
    def operations(self) -> Operations:
        """The rows of the table."""
        return Operations(self)

    @cached_property
    def flow_of(self) -> Column:
        """The number of each operation's flow."""
        lengths = [len(flow.operations) for flow in self.flows]
        return np.repeat(np.arange(len(self.flows)), lengths)

    @cached_property
    def columns(self) -> FlowColumns:
        """The flows as columns."""
        return FlowColumns(self.flows)

    @cached_property
    def message_flows(self) -> tuple[Flow, ...]:
        """The flows that send messages."""
        return tuple(flow for flow in self.flows if flow.verb is not Verb.COMPUTE)

    @cached_property
    def cut_short(self) -> frozenset[str]:
        """The entries whose operations may be skipped, so that their bytes are not known before."""
        numbers = np.unique(self.flow_of[self.not_after_ns > 0]).tolist()
        return frozenset(self.flows[number].traffic for number in numbers)

    @cached_property
    def devices(self) -> dict[str, int]:
        """The number of each device."""
        names = dict.fromkeys(flow.device for flow in self.flows if flow.device)
        return {name: number for number, name in enumerate(names)}

    @property
    def total_bytes(self) -> int:
        return int(self.size_bytes.sum())

    def bytes_of(self, flow: Flow) -> int:
        """The bytes of all operations of a flow."""
        return int(self.size_bytes[flow.operations.start : flow.operations.stop].sum())

    def bytes_between(self, src: str, dst: str) -> int:
        return sum(self.bytes_of(flow) for flow in self.flows if (flow.src, flow.dst) == (src, dst))

    def dependents(self) -> tuple[Column, Column]:
        """Two columns: `ids[first[i]:first[i + 1]]` are those that wait for `i`, lowest first."""
        ids = self.later[np.argsort(self.earlier, kind="stable")]
        waiting = np.bincount(self.earlier, minlength=len(self.size_bytes))
        return np.concatenate([[0], np.cumsum(waiting)]), ids

    def check(self, hosts: Collection[str]) -> None:
        """Raises ValueError if the graph cannot run: unknown hosts, or a cycle of operations."""
        for flow in self.flows:
            for host in (flow.src, flow.dst):
                if host not in hosts:
                    raise ValueError(f"flow {flow.name} needs {host}, and there is no such host")
        if len(self._circular()):
            import networkx as nx

            cycle = nx.find_cycle(self.dependencies())
            names = " > ".join(str(earlier) for earlier, _ in cycle)
            raise ValueError(f"operations {names} wait for each other in a cycle; none could start")

    def _circular(self) -> Column:
        """The operations in a cycle or after one, which can never start."""
        waits = np.bincount(self.later, minlength=len(self.size_bytes))
        first, dependents = self.dependents()
        ready = np.flatnonzero(waits == 0)
        while len(ready):
            waits[ready] = -1
            released = np.concatenate([dependents[first[i] : first[i + 1]] for i in ready.tolist()])
            np.subtract.at(waits, released, 1)
            ready = np.unique(released[waits[released] == 0])
        return np.flatnonzero(waits > 0)

    def dependencies(self) -> nx.DiGraph:
        """Edges from each operation to those that wait for it."""
        import networkx as nx  # takes longer to import than most commands run

        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(self.operations)))
        graph.add_edges_from(zip(self.earlier.tolist(), self.later.tolist(), strict=True))
        return graph

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OperationGraph)
            and (self.flows, self.jobs, self.steps) == (other.flows, other.jobs, other.steps)
            and all(map(np.array_equal, self._columns(), other._columns()))
        )

    def _columns(self) -> tuple[Column, ...]:
        return tuple(getattr(self, name) for name in (*_COLUMNS, *_RELATIONS, *_OF_REQUESTS))


_LEFT_OUT = {
    "not_before_ns": 0,
    "not_after_ns": 0,
    "lasts_ns": 0,
    "busy_ps": 0,
    "src_offset": NOWHERE,
    "dst_offset": NOWHERE,
    "reduce_offset": NOWHERE,
}
_COLUMNS = ("size_bytes", *_LEFT_OUT)
"""A row for each operation."""
_RELATIONS = ("earlier", "later", "begins", "ends")
"""The numbers of operations."""
_OF_REQUESTS = ("asks", "carries")
"""A row for each request."""


@dataclass(frozen=True)
class Operations(Sequence[Operation]):
    """The operations of a graph in order of id. Each object is created on access."""

    graph: OperationGraph

    def __len__(self) -> int:
        return len(self.graph.size_bytes)

    @overload
    def __getitem__(self, which: int) -> Operation: ...
    @overload
    def __getitem__(self, which: slice) -> tuple[Operation, ...]: ...
    def __getitem__(self, which: int | slice) -> Operation | tuple[Operation, ...]:
        ids = range(len(self))[which]
        return self._row(ids) if isinstance(ids, int) else tuple(map(self._row, ids))

    def _row(self, id: int) -> Operation:
        graph = self.graph
        flow = graph.flows[graph.flow_of[id]]
        first, end = np.searchsorted(graph.later, (id, id + 1))
        return Operation(
            id=id,
            verb=flow.verb,
            src=flow.src,
            dst=flow.dst,
            size_bytes=int(graph.size_bytes[id]),
            flow=flow.name,
            not_before_ns=int(graph.not_before_ns[id]),
            after=tuple(graph.earlier[first:end].tolist()),
            priority=flow.priority,
            lasts_ns=int(graph.lasts_ns[id]),
        )


def together(graphs: Iterable[OperationGraph]) -> OperationGraph:
    """One graph with all of them, which do not wait for each other."""
    parts = list(graphs)
    starts = list(accumulate((len(part.operations) for part in parts), initial=0))
    moved = list(zip(parts, starts, strict=False))
    return OperationGraph(
        flows=tuple(_moved(flow, start) for part, start in moved for flow in part.flows),
        **{
            name: _joined([getattr(part, name) + start for part, start in moved])
            for name in _RELATIONS
        },
        jobs=tuple(job for part in parts for job in part.jobs),
        steps=tuple(step for part in parts for step in part.steps),
        **{
            name: _joined([getattr(part, name) for part in parts])
            for name in (*_COLUMNS, *_OF_REQUESTS)
        },
    )


def _moved(flow: Flow, start: int) -> Flow:
    ids = flow.operations
    return replace(flow, operations=range(ids.start + start, ids.stop + start))


def _joined(columns: list[Column]) -> Column:
    return np.concatenate([_no_rows(), *columns])
