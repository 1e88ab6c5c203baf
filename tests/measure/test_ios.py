"""I/O figures of reads and writes, compared with plain counting and numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emu.measure.ios import io_figures
from emu.measure.requests import UNFINISHED, Requests
from traffic.graph import Asks


@given(seed=st.integers(0, 2**32), count=st.integers(1, 200), unfinished=st.integers(0, 5))
def test_reads_and_writes_are_separate(seed: int, count: int, unfinished: int) -> None:
    """Counts, bytes and percentiles of each, over one run time; plain messages are neither."""
    random = np.random.default_rng(seed)
    start_ns = random.integers(0, 10**6, count)
    took_ns = random.integers(1, 10**5, count)
    end_ns = np.where(np.arange(count) < unfinished, UNFINISHED, start_ns + took_ns)
    asks = random.integers(0, 3, count)
    requests = Requests(
        ("a",), np.zeros(count, np.int64), start_ns, end_ns, asks, np.full(count, 4096)
    )
    over = end_ns != UNFINISHED
    figures = {one.way: one for one in io_figures(requests)}
    assert set(figures) == {way for way in ("read", "write") if (asks == Asks[way.upper()]).any()}
    for way, one in figures.items():
        own = (asks == Asks[way.upper()]) & over
        assert one.latency.requests - one.latency.unfinished == own.sum()
        if not own.any():
            none = 0 if over.any() else None
            assert (one.iops, one.bandwidth_bps) == (none, none)
            assert one.latency.p99_ns is None
            continue
        run_ns = end_ns[over].max() - start_ns[over].min()
        assert one.iops == round(own.sum() * 1e9 / run_ns)
        assert abs(one.bandwidth_bps - own.sum() * 4096 * 8e9 / run_ns) <= 1
        p95 = round(np.quantile(took_ns[own], 0.95, method="linear"))
        assert one.latency.p95_ns == p95


def test_plain_messages_are_no_ios() -> None:
    """Requests without a kind give no figures."""
    zeros = np.zeros(3, np.int64)
    assert io_figures(Requests(("a",), zeros, zeros, zeros + 5)) == ()
