"""How late frames were over the run, which shows when the machine did not keep up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emu.report.charts.chart import Chart, TimeAxis, side_by_side, time_axis
from emu.report.figure import Axis, Plot
from emu.report.palette import BAD, FAINT, Legend, series_colour
from emu.report.run_view import RunFacts
from emu.report.scale import Unit
from emu.report.scale import time_unit as fitting_unit

_LATE = Legend("latest frame", series_colour(0))
_KEPT = Legend("longest in Open vSwitch", series_colour(1))
_LOST = Legend("frames lost by the machine", BAD)


def lateness(runs: Sequence[RunFacts]) -> Chart | None:
    """The chart of lateness; None when no frame was late, as on the virtual clock."""
    worst_ns = max((_worst_ns(run) for run in runs), default=0)
    if not worst_ns:
        return None
    time, unit = time_axis(runs), fitting_unit(worst_ns)
    highest = max(worst_ns, *(run.recording.fidelity.budget_ns for run in runs))
    y = Axis(0, 1.05 * highest / unit.size, f"lateness ({unit.name})")
    figure = side_by_side(runs, 2.0, time, y)
    for run, plot in zip(runs, figure.plots, strict=True):
        _draw(plot, run, time, unit)
    machines = [run.recording.machine for run in runs]
    seen = {
        _LATE: True,
        _KEPT: any(machine.kept_ns.any() for machine in machines),
        _LOST: any(machine.lost_frames.any() for machine in machines),
    }
    return Chart(
        title="How late frames left",
        svg=figure.svg("The worst lateness over time"),
        legend=tuple(legend for legend, shown in seen.items() if shown),
        caption="The latest frame in each interval, in emulated time. "
        "The dashed line is the budget for 99 % of frames.",
    )


def _worst_ns(run: RunFacts) -> int:
    recording = run.recording
    return max(
        int(own.max(initial=0)) for own in (recording.series.late_ns, recording.machine.kept_ns)
    )


def _draw(plot: Plot, run: RunFacts, time: TimeAxis, unit: Unit) -> None:
    series, machine = run.recording.series, run.recording.machine
    ends = [0, *(series.late_time_ns / time.unit.size)]
    late = series.late_ns / unit.size
    if len(late):
        plot.band(ends, 0 * late, late, _LATE.colour)
    ends = [0, *(machine.ledger_time_ns / time.unit.size)]
    if machine.kept_ns.any():
        plot.step_line(ends, machine.kept_ns / unit.size, _KEPT.colour)
    (lost,) = np.nonzero(machine.lost_frames.sum(axis=1))
    plot.crosses(np.take(ends, lost + 1), 0, _LOST.colour)
    budget = run.recording.fidelity.budget_ns / unit.size
    plot.line((0, plot.x.high), (budget, budget), FAINT, dash="4 3", thick=1.0)
