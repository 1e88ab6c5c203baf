"""Latency of requests: percentiles by numpy's `linear`, and a count of unfinished requests."""

from __future__ import annotations

import numpy as np
import pytest

from emu.measure.requests import UNFINISHED, Requests, latencies


def test_percentiles_are_of_finished_requests_only() -> None:
    """A hundred requests of 1 to 100 us in any order, and three that never ended, of two
    entries."""
    took = np.random.default_rng(1).permutation(np.arange(1, 101)) * 1000
    requests = Requests(
        traffic=("reads", "writes", "idle"),
        of=np.array([0] * 100 + [1, 0, 0]),
        start_ns=np.array([5_000] * 100 + [7, 8, UNFINISHED]),
        end_ns=np.concatenate([5_000 + took, [UNFINISHED] * 3]),
    )
    reads, writes = latencies(requests)
    assert (reads.traffic, reads.requests, reads.unfinished) == ("reads", 102, 2)
    assert (reads.p50_ns, reads.p90_ns, reads.p99_ns) == (50_500, 90_100, 99_010)
    assert (reads.p999_ns, reads.max_ns, reads.mean_ns) == (99_901, 100_000, 50_500)
    assert reads.finished == 100
    assert (writes.mean_ns, writes.p50_ns, writes.p99_ns) == (None, None, None)
    assert (writes.requests, writes.unfinished, writes.max_ns) == (1, 1, None)


@pytest.mark.parametrize("count", [1, 2, 999, 1000])
def test_percentiles_agree_with_numpy(count: int) -> None:
    """With numpy's `linear`, as in pandas, in whole nanoseconds."""
    took = np.random.default_rng(count).integers(1, 10**6, count)
    (latency,) = latencies(
        Requests(("a",), np.zeros(count, np.int64), np.zeros(count, np.int64), took)
    )
    for share, value in ((0.5, latency.p50_ns), (0.99, latency.p99_ns), (0.999, latency.p999_ns)):
        assert value == round(np.quantile(took, share, method="linear"))
