"""The verdict on a run's fidelity: did the machine keep to the schedule?

A frame may be sent or received late by at most the time its link needs for one MTU. If more than
one frame in a hundred is later, or if the machine lost or reordered a frame, the run is
inconclusive and its numbers are not results.

Drops of lossless packets need a closer look. Either the modelled fabric drops them, because its
headroom is too small, or the machine does: a pause took effect late, and the frames it delayed
arrived all at once. If the modelled fabric drops lossless packets, drops occur throughout the run,
or while a fault of the spec reduces the headroom. If every drop follows a frame that was later than
allowed, the drops count as the machine's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from emu._core import lib
from emu.measure.observation import Histogram, Observation, Timing
from emu.measure.records import Fidelity
from emu.measure.timeline import Timeline
from emu.units import round_up

_FINE: int = lib.HISTOGRAM_FINE
_SHARES = (0.5, 0.99, 1.0)
_FURTHEST = 4.0
"""A hint suggests at most so many times the present slowdown: one hiccup of the machine is no
basis for more."""


def bucket_value(bucket: int) -> int:
    """The lower bound of a bucket of emu/core/observe/latency_histogram.h, in ns."""
    if bucket < _FINE:
        return bucket
    exponent, fraction = divmod(bucket, _FINE)
    return (_FINE + fraction) << (exponent - 1)


def percentile(histogram: Histogram, share: float) -> int:
    """A value that `share` of all entries do not exceed, within a bucket; 0 when it is empty."""
    total = int(histogram.sum())
    if total == 0:
        return 0
    bucket = int(np.searchsorted(np.cumsum(histogram), share * total))
    return bucket_value(bucket + 1) - 1


def fidelity_of(
    observations: Sequence[Observation],
    timeline: Timeline,
    *,
    slowdown: float,
    budget_ns: int,
    headroom_ns: int,
    transit_lost: int,
    dropped_by_faults: int = 0,
) -> Fidelity:
    """`timeline`: of all observations together. `budget_ns`: one MTU's serialisation on the fastest
    link. `headroom_ns`: the longest time in which any port's headroom fills at its link's rate.
    Both are emulated times. `transit_lost`: packets that Open vSwitch lost or had no room for.
    `dropped_by_faults`: lossless packets that faults of the spec dropped."""
    timings = [seen.timing for seen in observations if seen.timing is not None]
    late = [histogram for timing in timings for histogram in timing.late]
    kept = [timing.plane_kept for timing in timings]
    p50, p99, most = (_worst(late, share, slowdown) for share in _SHARES)
    kept_p50, kept_p99, kept_most = (_worst(kept, share, slowdown) for share in _SHARES)
    reasons = [
        *_late(p99, budget_ns, slowdown),
        *_lost(timings, transit_lost),
        *_dropped(timeline, dropped_by_faults, budget_ns, headroom_ns, slowdown),
        *_exhausted(observations),
    ]
    return Fidelity(
        verdict="inconclusive" if reasons else "ok",
        late_p50_ns=p50,
        late_p99_ns=p99,
        late_max_ns=most,
        ovs_kept_p50_ns=kept_p50,
        ovs_kept_p99_ns=kept_p99,
        ovs_kept_max_ns=kept_most,
        budget_ns=budget_ns,
        reasons=tuple(reasons),
    )


def _worst(histograms: Iterable[Histogram], share: float, slowdown: float) -> int:
    """The worst of several histograms, in emulated time."""
    return round(max((percentile(h, share) for h in histograms), default=0) / slowdown)


def _late(p99_ns: int, budget_ns: int, slowdown: float) -> list[str]:
    if p99_ns <= budget_ns:
        return []
    times = p99_ns / budget_ns * 1.25
    hint = f"{round_up(slowdown * min(times, _FURTHEST))}{' or more' * (times > _FURTHEST)}"
    return [
        f"one frame in a hundred was more than {p99_ns} ns late, allowed are {budget_ns} ns; "
        f"try slowdown: {hint}, or fewer hosts"
    ]


def _lost(timings: Iterable[Timing], transit_lost: int) -> list[str]:
    reasons = []
    if transit_lost:
        reasons.append(f"Open vSwitch lost {transit_lost} packets; try a larger slowdown")
    for timing in timings:
        if timing.receive_drops:
            reasons.append(
                f"{timing.receive_drops} frames found a socket's buffer full; try a larger slowdown"
            )
        if timing.send_failures:
            reasons.append(f"the kernel refused {timing.send_failures} frames")
        if timing.overtaken:
            reasons.append(
                f"{timing.overtaken} frames were overtaken by later ones of the same sender, which "
                "was moved between processors; try a larger slowdown"
            )
    return reasons


def _dropped(
    timeline: Timeline, by_faults: int, budget_ns: int, headroom_ns: int, slowdown: float
) -> list[str]:
    """Whether lossless drops happened in undisturbed times, too. A late frame arrives later by its
    lateness, and the frames behind it follow within the same time, even during a pause. They then
    occupy the headroom.
    """
    late_ns = np.rint(timeline.late_ns / slowdown)
    disturbed = np.zeros(len(late_ns), np.bool_)
    for interval in np.flatnonzero(late_ns > budget_ns):
        lasts_ns = 2 * timeline.late_ns[interval] + headroom_ns * slowdown
        disturbed[interval : interval + 2 + int(lasts_ns) // timeline.interval_ns] = True
    if timeline.dropped.sum() <= by_faults or timeline.dropped[~disturbed].any():
        return []
    return [
        f"{timeline.dropped.sum()} lossless packets were dropped, each of them soon after a frame "
        f"was more than {budget_ns} ns late; try a larger slowdown"
    ]


def _exhausted(observations: Iterable[Observation]) -> list[str]:
    missing = sum(seen.frames_exhausted for seen in observations)
    return [f"{missing} frames found no room in the emulator's memory"] if missing else []
