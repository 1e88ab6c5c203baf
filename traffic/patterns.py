"""Patterns of traffic: functions from hosts to a graph of operations.

A flow is the messages of one pair of hosts, one after another. Each message starts when the one
before it is acknowledged, or, with n outstanding, the n-th one before it. The flows of a pattern
run at the same time. If a pattern has only one flow, the flow has the pattern's name; otherwise
the names are `<name>.<source>-<destination>`.

    incast       outcast      pair        permutation             all-to-all

    h2 ─┐             ┌─▶ h2  h1 ─▶ h5    h1 ─▶ h3 ─▶ h2 ─▶ h1    every host to every other
    h3 ─┼─▶ h1   h1 ──┼─▶ h3  h2 ─▶ h6    h4 ─▶ h5 ─▶ h4
    h4 ─┘             └─▶ h4              (drawn at random)

In bursts, messages also wait for their time: burst n begins n periods after the start, or later if
earlier messages are not over by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq
from random import Random

import numpy as np

from traffic.graph import Flow, OperationGraph
from traffic.verb import Verb

Pairs = Sequence[tuple[str, str]]
"""Source and destination of each flow."""


@dataclass(frozen=True)
class Messages:
    """The messages of every flow of a pattern."""

    verb: Verb
    size_bytes: int
    count: int = 1
    outstanding: int = 1
    """The most messages of a flow in flight at the same time."""
    start_ns: int = 0
    priority: int | None = None
    burst: int = 1
    """The number of messages of a burst."""
    period_ns: int = 0
    """The time from the start of a burst to that of the next; 0: no bursts."""


def incast(name: str, sources: Sequence[str], to: str, messages: Messages) -> OperationGraph:
    """Every source sends to the same host."""
    return _side_by_side(name, [(source, to) for source in sources], messages)


def outcast(name: str, source: str, to: Sequence[str], messages: Messages) -> OperationGraph:
    """One host sends to several, at the same time."""
    return _side_by_side(name, [(source, destination) for destination in to], messages)


def pair(
    name: str, sources: Sequence[str], destinations: Sequence[str], messages: Messages
) -> OperationGraph:
    """The first source sends to the first destination, the second to the second, and so on.

    Raises ValueError if there are not as many sources as destinations.
    """
    return _side_by_side(name, list(zip(sources, destinations, strict=True)), messages)


def permutation(
    name: str, hosts: Sequence[str], messages: Messages, random: Random
) -> OperationGraph:
    """Every host sends to one other and receives from one other."""
    return _side_by_side(name, permuted(hosts, random), messages)


def all_to_all(name: str, hosts: Sequence[str], messages: Messages) -> OperationGraph:
    """Every host sends to every other."""
    return _side_by_side(name, each_to_each(hosts), messages)


def permuted(hosts: Sequence[str], random: Random) -> Pairs:
    """A random permutation that maps no host to itself; all such permutations are equally likely.

    It draws until no host is mapped to itself, 2.7 times on average. Raises ValueError for a single
    host, which could only send to itself.
    """
    if len(hosts) == 1:
        raise ValueError(f"{hosts[0]} has no other host to send to")
    destinations = list(hosts)
    while any(map(eq, hosts, destinations)):
        random.shuffle(destinations)
    return list(zip(hosts, destinations, strict=True))


def each_to_each(hosts: Sequence[str]) -> Pairs:
    """All ordered pairs. Every host begins with the next one, so no two begin with the same."""
    return [
        (source, hosts[(place + distance) % len(hosts)])
        for place, source in enumerate(hosts)
        for distance in range(1, len(hosts))
    ]


def flow_names(name: str, pairs: Pairs) -> list[str]:
    """Names of a pattern's flows, given each one's source and destination."""
    if len(pairs) == 1:
        return [name]
    return [f"{name}.{src}-{dst}" for src, dst in pairs]


def flows(
    name: str, pairs: Pairs, verb: Verb, *, operations_each: int, priority: int | None
) -> tuple[Flow, ...]:
    """A flow for each pair, with its share of consecutive operations."""
    return tuple(
        Flow(
            name=flow_name,
            traffic=name,
            src=src,
            dst=dst,
            verb=verb,
            operations=range(place * operations_each, (place + 1) * operations_each),
            priority=priority,
        )
        for place, (flow_name, (src, dst)) in enumerate(
            zip(flow_names(name, pairs), pairs, strict=True)
        )
    )


def _side_by_side(name: str, pairs: Pairs, messages: Messages) -> OperationGraph:
    ids = np.arange(len(pairs) * messages.count)
    place = ids % messages.count
    waiting = ids[place >= messages.outstanding]
    return OperationGraph(
        flows=flows(
            name,
            pairs,
            messages.verb,
            operations_each=messages.count,
            priority=messages.priority,
        ),
        size_bytes=np.full(len(ids), messages.size_bytes),
        not_before_ns=messages.start_ns + place // messages.burst * messages.period_ns,
        earlier=waiting - messages.outstanding,
        later=waiting,
        begins=ids,
        ends=ids,
    )
