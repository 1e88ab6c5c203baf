"""The progress line, on a terminal and elsewhere."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest

from emu.measure.run_progress import RunProgress
from emu.report.progress import ProgressLine, progress_line, share_done


def progress(done: int, **counts: Any) -> RunProgress:
    return RunProgress(260_000, done, 8_000_000, 5, 8, **counts)


def test_the_line_has_every_figure() -> None:
    """The figures are share, bytes, flows, both times, drops and pauses."""
    line = progress_line("incast", progress(3_200_000, drops=0, pauses=1210), wall_seconds=0.42)
    assert line == (
        "incast  40%  3.2 MB of 8 MB  5 of 8 flows  emulated 260 us"
        "  drops 0  pauses 1,210  wall 0.4 s"
    )


def test_unknown_counts_are_not_shown() -> None:
    """A count that is known only at the end is not shown as zero."""
    assert "drops" not in progress_line("incast", progress(0), wall_seconds=0)


def test_a_log_gets_one_line_per_run() -> None:
    """The line is that of the end, whatever the number of updates."""
    out = StringIO()
    with ProgressLine("incast", out, clock=lambda: 0.0) as line:
        for done in range(0, 8_000_001, 100_000):
            line.update(progress(done))
    lines = out.getvalue().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("incast  100%")


def test_a_log_of_a_long_run_gets_lines_with_the_time_left() -> None:
    """A line every ten seconds; the rate so far gives the time that is left."""
    out = StringIO()
    seconds = 0.0
    with ProgressLine("incast", out, clock=lambda: seconds) as line:
        for done in range(41):
            seconds = float(done)
            line.update(progress(done * 200_000))
    lines = out.getvalue().splitlines()
    assert [text.split("about ")[1] for text in lines[:3]] == [
        "30 s left",
        "20 s left",
        "10 s left",
    ]
    assert len(lines) == 5
    assert "left" not in lines[-1]


def test_without_a_stream_nothing_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """`--quiet` passes no stream."""
    with ProgressLine("incast", None) as line:
        line.update(progress(8_000_000))
    assert capfd.readouterr() == ("", "")


def test_a_workload_without_bytes_is_complete() -> None:
    """There is no division by zero."""
    assert share_done(RunProgress(0, 0, 0, 0, 0)) == 1.0
