"""Patterns whose messages are drawn at random: a hot spot, and background load.

The receiver of each message is random, so a host has as many flows as it has receivers:

    hot spot      every host sends its messages one after another, some of them to
                  the same host, the others to random hosts
    background    every host sends at random times to random hosts, even if earlier messages
                  are not over (open loop); the sizes are from a distribution

    h1  ─┬──────┬─┬────────┬─▶ time      ┬ a message of h1; the gaps are exponential
         h4     h2 h4      h3             (a Poisson process)

Python's own random generator is used, because its numbers are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random

import numpy as np

from traffic.distributions import Distribution
from traffic.graph import Flow, OperationGraph
from traffic.patterns import Messages, flow_names
from traffic.verb import Verb

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Draw:
    """One message, as drawn."""

    src: str
    dst: str
    size_bytes: int
    not_before_ns: int
    place: int
    """Among the messages of its sender, from 0 on."""
    connection: int = 0
    """Which of those between the two."""


def hot_spot(
    name: str, hosts: Sequence[str], hot: str, share: float, messages: Messages, random: Random
) -> OperationGraph:
    """Every host but `hot` sends `messages.count` messages, a `share` of them (0 to 1) to `hot`.

    A host has at most `messages.outstanding` messages in flight, to all receivers together. Raises
    ValueError if there are not two hosts besides the hot one.
    """
    cold = [host for host in hosts if host != hot]
    if len(cold) < 2:
        raise ValueError(f"beside {hot} there must be two hosts or more")
    draws = [
        Draw(src, dst, messages.size_bytes, messages.start_ns, place)
        for src in cold
        for place, dst in enumerate(_hot_receivers(src, cold, hot, share, messages.count, random))
    ]
    return _graph(
        name,
        hosts,
        draws,
        messages.verb,
        messages.priority,
        outstanding=messages.outstanding,
    )


def _hot_receivers(
    src: str, cold: Sequence[str], hot: str, share: float, count: int, random: Random
) -> list[str]:
    to_hot = round(share * count)
    others = [host for host in cold if host != src]
    receivers = [hot] * to_hot + [random.choice(others) for _ in range(count - to_hot)]
    random.shuffle(receivers)
    return receivers


def background(
    name: str,
    hosts: Sequence[str],
    sizes: Distribution,
    *,
    rate_bps: float,
    count: int,
    verb: Verb,
    start_ns: int,
    priority: int | None,
    random: Random,
    connections: int = 1,
) -> OperationGraph:
    """Every host sends `count` messages at random times, `rate_bps` bits of message per second.

    The rate is that of each sender, on average over many messages. Messages between the same
    two take turns on their `connections`.
    """
    mean_gap_ns = sizes.mean_bytes * 8 * NS_PER_S / rate_bps
    draws: list[Draw] = []
    for src in hosts:
        others = [host for host in hosts if host != src]
        sent = dict.fromkeys(others, 0)
        at_ns = float(start_ns)
        for place in range(count):
            at_ns += random.expovariate(1 / mean_gap_ns)
            dst = random.choice(others)
            size, turn = sizes.draw(random), sent[dst] % connections
            draws.append(Draw(src, dst, size, round(at_ns), place, turn))
            sent[dst] += 1
    return _graph(name, hosts, draws, verb, priority)


def _graph(
    name: str,
    hosts: Sequence[str],
    draws: Iterable[Draw],
    verb: Verb,
    priority: int | None,
    *,
    outstanding: int | None = None,
) -> OperationGraph:
    """A flow for each connection with messages. `outstanding`: of a sender at a time; None: any."""
    order = {host: place for place, host in enumerate(hosts)}
    rows = sorted(
        draws, key=lambda draw: (order[draw.src], order[draw.dst], draw.connection, draw.place)
    )
    ids = np.arange(len(rows))
    waits = sorted(_waits(rows, outstanding), key=lambda wait: wait[1]) if outstanding else []
    return OperationGraph(
        flows=tuple(_flows(name, rows, verb, priority)),
        size_bytes=np.array([row.size_bytes for row in rows], np.int64),
        not_before_ns=np.array([row.not_before_ns for row in rows], np.int64),
        earlier=np.array([earlier for earlier, _ in waits], np.int64),
        later=np.array([later for _, later in waits], np.int64),
        begins=ids,
        ends=ids,
    )


def _waits(rows: Sequence[Draw], outstanding: int) -> Iterator[tuple[int, int]]:
    """Which row waits for which other of the same sender."""
    row_of = {(row.src, row.place): id for id, row in enumerate(rows)}
    for id, row in enumerate(rows):
        if row.place >= outstanding:
            yield row_of[row.src, row.place - outstanding], id


def _flows(name: str, rows: Sequence[Draw], verb: Verb, priority: int | None) -> Iterator[Flow]:
    groups = groupby(rows, lambda row: (row.src, row.dst, row.connection))
    flows = [(src, dst, turn, len(list(own))) for (src, dst, turn), own in groups]
    names = flow_names(name, [(src, dst) for src, dst, *_ in flows])
    first = 0
    for flow_name, (src, dst, turn, count) in zip(names, flows, strict=True):
        ids = range(first, first + count)
        label = flow_name + (f"#{turn + 1}" if turn else "")
        yield Flow(label, name, src, dst, verb, ids, priority)
        first += count
