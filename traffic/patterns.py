"""Patterns of traffic: functions from hosts to a graph of operations.

A flow is the messages of one pair of hosts, one after another: each starts when
the one before is acknowledged. Flows of a pattern run side by side. A pattern's
only flow has its name; of several each is `<name>.<source>-<destination>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traffic.graph import Flow, Operation, OperationGraph, Verb


@dataclass(frozen=True)
class Messages:
    """What every flow of a pattern sends."""

    verb: Verb
    size_bytes: int
    count: int = 1
    start_ns: int = 0
    priority: int | None = None


def incast(name: str, sources: Sequence[str], to: str, messages: Messages) -> OperationGraph:
    """Every source sends to the same host."""
    return _side_by_side(name, [(source, to) for source in sources], messages)


def pair(
    name: str, sources: Sequence[str], destinations: Sequence[str], messages: Messages
) -> OperationGraph:
    """The first source sends to the first destination, the second to the second, and so on.

    Raises ValueError when there are not as many of the ones as of the others.
    """
    return _side_by_side(name, list(zip(sources, destinations, strict=True)), messages)


def flow_names(name: str, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Names of a pattern's flows, given each one's source and destination."""
    if len(pairs) == 1:
        return [name]
    return [f"{name}.{src}-{dst}" for src, dst in pairs]


def _side_by_side(name: str, pairs: list[tuple[str, str]], messages: Messages) -> OperationGraph:
    flows = tuple(
        Flow(
            name=flow_name,
            traffic=name,
            src=src,
            dst=dst,
            verb=messages.verb,
            operations=tuple(range(i * messages.count, (i + 1) * messages.count)),
        )
        for i, (flow_name, (src, dst)) in enumerate(
            zip(flow_names(name, pairs), pairs, strict=True)
        )
    )
    operations = tuple(_operation(flow, id, messages) for flow in flows for id in flow.operations)
    return OperationGraph(operations, flows)


def _operation(flow: Flow, id: int, messages: Messages) -> Operation:
    return Operation(
        id=id,
        verb=flow.verb,
        src=flow.src,
        dst=flow.dst,
        size_bytes=messages.size_bytes,
        flow=flow.name,
        not_before_ns=messages.start_ns,
        after=() if id == flow.operations[0] else (id - 1,),
        priority=messages.priority,
    )
