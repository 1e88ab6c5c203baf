"""Checks of queues over time."""

from __future__ import annotations

from emu.measure.recording import Recording
from emu.report.verdict.outcome import Outcome
from emu.report.verdict.window import window_ns
from emu.spec.model import QueueDepth
from emu.units import format_size


def depth(check: QueueDepth, run: Recording) -> Outcome:
    series, (start_ns, end_ns) = run.series, window_ns(check, run)
    looked_at = (series.time_ns >= start_ns) & (series.time_ns <= end_ns)
    if check.port not in series.ports or not looked_at.any():
        return Outcome(False, f"there are no samples of {check.port}")
    samples = series.queue_bytes[looked_at, series.ports.index(check.port)]
    measured = float(samples.mean() if check.statistic == "mean" else samples.max())
    return Outcome(check.allow(measured, run.clock), format_size(measured))
