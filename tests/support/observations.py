"""Synthetic observations of a run on the real clock."""

from __future__ import annotations

from typing import Any

import numpy as np

from emu.measure.fidelity import bucket_value
from emu.measure.observation import Histogram, Observation, Samples, Timing
from emu.measure.timeline import EMPTY_TIMELINE


def bucket_of(value: int) -> int:
    """The bucket of a value, by the definition of buckets."""
    return max(bucket for bucket in range(1024) if bucket_value(bucket) <= value)


def histogram(*values: int) -> Histogram:
    counts = np.zeros(1024, np.uint64)
    for value in values:
        counts[bucket_of(value)] += 1
    return counts


WAYS_TO_BE_LATE = ("late_sent", "late_taken_in", "late_returned")


def observation(late: Histogram, way: str = "late_sent", **faults: int) -> Observation:
    ways = (*WAYS_TO_BE_LATE, "plane_kept")
    histograms: dict[str, Any] = dict.fromkeys(ways, histogram()) | {way: late}
    empty = np.zeros((0, 0), np.int64)
    samples = Samples(np.zeros(0, np.int64), (), empty, empty, empty, empty, empty, empty)
    timing = Timing(
        **histograms,
        send_failures=faults.get("send_failures", 0),
        receive_drops=faults.get("receive_drops", 0),
        overtaken=faults.get("overtaken", 0),
        timeline=EMPTY_TIMELINE,
    )
    return Observation({}, samples, faults.get("exhausted", 0), 0, timing=timing)
