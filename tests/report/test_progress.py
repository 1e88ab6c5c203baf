"""The progress line, on a terminal and off it."""

from __future__ import annotations

from io import StringIO
from itertools import count

import pytest

from emu.measure.run_progress import RunProgress
from emu.report.progress import ProgressLine, progress_line, share_done


def progress(done: int, **counts: int) -> RunProgress:
    return RunProgress(260_000, done, 8_000_000, 5, 8, **counts)


def test_line_says_all_there_is_to_say() -> None:
    """Share, bytes, flows, both times, and what went wrong so far."""
    line = progress_line("incast", progress(3_200_000, drops=0, pauses=1210), wall_seconds=0.42)
    assert line == (
        "incast  40%  3.2 MB of 8 MB  5 of 8 flows  emulated 260 us"
        "  drops 0  pauses 1,210  wall 0.4 s"
    )


def test_what_is_not_counted_is_not_shown() -> None:
    """A count that only comes at the end is not shown as zero."""
    assert "drops" not in progress_line("incast", progress(0), wall_seconds=0)


def test_a_log_gets_one_line_a_run() -> None:
    """However often the run reports: where it ended."""
    out = StringIO()
    with ProgressLine("incast", out, clock=count().__next__) as line:
        for done in range(0, 8_000_001, 100_000):
            line.update(progress(done))
    lines = out.getvalue().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("incast  100%")


def test_without_a_stream_nothing_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """As --quiet asks."""
    with ProgressLine("incast", None) as line:
        line.update(progress(8_000_000))
    assert capfd.readouterr() == ("", "")


def test_nothing_to_deliver_is_all_done() -> None:
    """A workload of no bytes divides nothing by zero."""
    assert share_done(RunProgress(0, 0, 0, 0, 0)) == 1.0
