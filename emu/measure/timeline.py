"""When things happened on the machine that emulates, in intervals of wall-clock time.

Each process of a run notes for itself (emu/core/observe/latency_histogram.h), in intervals that
grow with the run; the views of all become one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LOSSES = ("ovs", "arriving", "leaving", "place")
"""Ways to lose a frame that the emulated fabric would not lose: Open vSwitch did not return it or
had no room; a socket's buffer or ring was full; the kernel refused it; or a later frame of the same
sender overtook it. In the order of
emu/core/observe/latency_histogram.h."""


@dataclass(frozen=True)
class Timeline:
    """What happened in each interval of wall-clock time since the start; k: as in LOSSES."""

    interval_ns: int
    """0: nothing was recorded."""
    late_ns: NDArray[np.int64]
    """(1024,): the most that a frame was."""
    kept_ns: NDArray[np.int64]
    """(1024,): the longest that Open vSwitch had one that came back then."""
    lost: NDArray[np.int64]
    """(1024, k): frames."""
    dropped: NDArray[np.int64]
    """(1024,): lossless packets that an emulated switch's headroom did not hold."""


_NONE = np.zeros(0, np.int64)
EMPTY_TIMELINE = Timeline(0, _NONE, _NONE, np.zeros((0, len(LOSSES)), np.int64), _NONE)


def together(timelines: Sequence[Timeline]) -> Timeline:
    """The worst of all in each interval, and the sums of all; intervals of the longest."""
    interval_ns = max((timeline.interval_ns for timeline in timelines), default=0)
    alike = [_coarsened(own, interval_ns) for own in timelines if own.interval_ns]
    if not alike:
        return EMPTY_TIMELINE
    return Timeline(
        interval_ns,
        late_ns=np.max([own.late_ns for own in alike], axis=0),
        kept_ns=np.max([own.kept_ns for own in alike], axis=0),
        lost=np.sum([own.lost for own in alike], axis=0),
        dropped=np.sum([own.dropped for own in alike], axis=0),
    )


def _coarsened(timeline: Timeline, interval_ns: int) -> Timeline:
    """The same with longer intervals, as many of its own each."""
    own, factor = len(timeline.late_ns), interval_ns // timeline.interval_ns

    def grouped(values: NDArray[np.int64]) -> NDArray[np.int64]:
        return values.reshape(own // factor, factor, *values.shape[1:])

    def padded(values: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.pad(values, [(0, own - len(values)), *[(0, 0)] * (values.ndim - 1)])

    return Timeline(
        interval_ns,
        late_ns=padded(grouped(timeline.late_ns).max(axis=1)),
        kept_ns=padded(grouped(timeline.kept_ns).max(axis=1)),
        lost=padded(grouped(timeline.lost).sum(axis=1)),
        dropped=padded(grouped(timeline.dropped).sum(axis=1)),
    )
