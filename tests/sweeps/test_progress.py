"""The line while a sweep goes on."""

from __future__ import annotations

from io import StringIO

import pytest

pytest.importorskip("distributed", reason="needs Dask (emu[sweep])")

from emu.sweeps.progress import SweepLine


def last_line(seconds_a_run: float, runs: int = 40) -> str:
    out, now = StringIO(), 0.0
    with SweepLine("ecn", 75, 10, out, clock=lambda: now) as line:
        for _ in range(runs):
            now += seconds_a_run
            line.add(failed=False)
    return out.getvalue().splitlines()[-1]


def test_the_rate_tells_how_long_the_rest_takes() -> None:
    line = last_line(0.5)
    assert line == "ecn  67%  50 of 75 runs  10 read from the folder  2 runs/s  about 12 s left"


def test_runs_that_come_at_once_have_no_rate() -> None:
    """They were read from the folder."""
    assert "runs/s" not in last_line(1e-6)
