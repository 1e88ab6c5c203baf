"""Bandwidth and latency from the times of single messages, as perftest defines them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emu.measure.percentile import percentiles
from emu.perf.document import Bandwidth, Latency

Column = NDArray[np.int64]
_NS_PER_US = 1000


def bandwidth(size_bytes: int, posted_ns: Column, over_ns: Column) -> Bandwidth:
    """The bandwidth of messages in order of posting, from their times of posting and completion."""
    count = len(posted_ns)
    per_message_ns = (over_ns.max() - posted_ns[0]) / count
    return Bandwidth(
        size_bytes=size_bytes,
        iterations=count,
        peak_gbps=8 * size_bytes / _least_time_of_a_message(posted_ns, over_ns),
        average_gbps=8 * size_bytes / per_message_ns,
        message_rate_mpps=1000 / per_message_ns,
    )


def _least_time_of_a_message(posted_ns: Column, over_ns: Column) -> float:
    """The least (end of j - post of i) / (j - i + 1) over all i <= j, in nanoseconds."""
    return min(
        float(((over_ns[i:] - posted) / np.arange(1, len(posted_ns) - i + 1)).min())
        for i, posted in enumerate(posted_ns)
    )


def latency(size_bytes: int, took_ns: NDArray[np.float64]) -> Latency:
    """The latency of messages, from the time that each took."""
    took = np.sort(took_ns) / _NS_PER_US
    typical, p99, p999 = percentiles(took, (0.5, 0.99, 0.999))
    return Latency(
        size_bytes=size_bytes,
        iterations=len(took),
        t_min=float(took[0]),
        t_max=float(took[-1]),
        t_typical=typical,
        t_avg=float(took.mean()),
        t_stdev=float(took.std()),
        p99=p99,
        p999=p999,
    )
