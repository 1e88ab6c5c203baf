"""What many cases share: one port is paused, and the flows of all priorities run on.

The paused priorities must receive nothing and lose nothing; the others keep their rate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from emu.plans.bench import LARGE, START_NS, Bench, Storm, names_of
from emu.plans.case import Measured, all_hold
from emu.plans.traffic import Stream
from emu.plans.trial import Trial

RATE_TOLERANCE = 0.02

Part = tuple[bool, str]
"""Whether a part of a criterion holds, and the sentence that says what was measured."""


def paused_port(bench: Bench, priorities: tuple[int, ...], *, payload: int = LARGE) -> Measured:
    """The receiver pauses these priorities; a flow of each priority at an eighth of the line."""
    streams = bench.streams(bench.priorities, payload=payload)
    return all_hold(*stormed(bench, streams, priorities, bench.window_ns(payload)))


def stormed(
    bench: Bench,
    streams: Sequence[Stream],
    paused: tuple[int, ...],
    window_ns: int,
) -> list[Part]:
    """Runs the flows while the receiver pauses some priorities, and judges the window."""
    port = bench.port_of(bench.receiver)
    first, last = START_NS + window_ns // 4, START_NS + window_ns * 5 // 4
    storm = Storm(bench.receiver, paused, 0, last + window_ns)
    with bench.trial(streams, for_ns=window_ns * 3 // 2, storms=[storm]) as trial:
        trial.run_until(first)
        before = trial.counters(port)
        trial.run_until(last)
        after = trial.counters(port)
        return [
            nothing_sent(after, paused),
            rates_kept(streams, before, after, window_ns, without=paused),
            nothing_lost(trial, {stream.priority for stream in streams}),
            pauses_received(trial, port, paused),
        ]


def nothing_sent(counters: Mapping[str, Sequence[int]], paused: Collection[int]) -> Part:
    """Paused priorities: exactly 0 packets from the start of the run."""
    packets = sum(counters["tx_packets"][priority] for priority in paused)
    return packets == 0, f"{names_of(paused)} received {packets} packets"


def rates_kept(
    streams: Iterable[Stream],
    before: Mapping[str, Sequence[int]],
    after: Mapping[str, Sequence[int]],
    window_ns: int,
    *,
    without: Collection[int] = (),
) -> Part:
    """Every other priority has its rate in the window, counted in packets."""
    offered: dict[int, float] = {}
    for stream in streams:
        if stream.priority not in without:
            packets = stream.packets_per_ns * window_ns
            offered[stream.priority] = offered.get(stream.priority, 0) + packets
    if not offered:
        return False, "no DSCP leads to another priority"
    shares = {
        priority: (after["tx_packets"][priority] - before["tx_packets"][priority]) / packets
        for priority, packets in offered.items()
    }
    worst = max(shares, key=lambda priority: abs(shares[priority] - 1))
    holds = abs(shares[worst] - 1) <= RATE_TOLERANCE
    told = f"priority {worst} has {shares[worst]:.1%} of its rate"
    return holds, f"{told}, the others are nearer" if holds else told


def nothing_lost(trial: Trial, priorities: Collection[int]) -> Part:
    """No packet of these priorities ended anywhere."""
    lost = {priority: count for priority in priorities if (count := trial.dropped(priority))}
    if not lost:
        return True, "no loss"
    told = ", ".join(f"{count} of priority {priority}" for priority, count in lost.items())
    return False, f"lost {told}"


def pauses_received(trial: Trial, port: str, paused: Collection[int]) -> Part:
    """RxPfc of paused priorities counts, that of all others is 0."""
    received = trial.counters(port)["rx_pause"]
    others = sum(count for priority, count in enumerate(received) if priority not in paused)
    holds = all(received[priority] > 0 for priority in paused) and not others
    told = ", ".join(f"RxPfc[{priority}] {received[priority]}" for priority in paused)
    return holds, f"{told}, others {others}"


def flat(values: Iterable[Iterable[Any]]) -> list[Any]:
    """One list of all."""
    return [value for some in values for value in some]
