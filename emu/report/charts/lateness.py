"""How faithfully the machine kept to the schedule over the run: where it had a hiccup, if any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from emu.report.charts.chart import Chart, TimeAxis, side_by_side, time_axis
from emu.report.facts import RunFacts
from emu.report.figure import inline_svg
from emu.report.palette import BAD, Legend, series_colour
from emu.report.scale import Unit
from emu.report.scale import time_unit as fitting_unit

_LATE = Legend("latest frame", series_colour(0))
_KEPT = Legend("longest in Open vSwitch", series_colour(1))
_LOST = Legend("frames lost by the machine", BAD)


def lateness(runs: Sequence[RunFacts]) -> Chart | None:
    """None when nothing was late, as on the virtual clock."""
    worst_ns = max((_worst_ns(run) for run in runs), default=0)
    if not worst_ns:
        return None
    time, unit = time_axis(runs), fitting_unit(worst_ns)
    figure, axes = side_by_side(runs, 2.0, time)
    for run, ax in zip(runs, axes, strict=True):
        _draw(ax, run, time, unit)
    axes[0].set_ylabel(f"lateness ({unit.name})")
    axes[0].set_ylim(bottom=0)
    machines = [run.recording.machine for run in runs]
    seen = {
        _LATE: True,
        _KEPT: any(machine.kept_ns.any() for machine in machines),
        _LOST: any(machine.lost_frames.any() for machine in machines),
    }
    return Chart(
        title="How late frames left",
        svg=inline_svg(figure, "The worst lateness over time"),
        legend=tuple(legend for legend, shown in seen.items() if shown),
        caption="The latest frame of each moment, in emulated time. "
        "The dashed line is the budget, which 99 of 100 frames must keep.",
    )


def _worst_ns(run: RunFacts) -> int:
    recording = run.recording
    return max(
        int(own.max(initial=0)) for own in (recording.series.late_ns, recording.machine.kept_ns)
    )


def _draw(ax: Axes, run: RunFacts, time: TimeAxis, unit: Unit) -> None:
    series, machine = run.recording.series, run.recording.machine
    ends = [0, *(series.late_time_ns / time.unit.size)]
    ax.stairs(series.late_ns / unit.size, ends, fill=True, color=_LATE.colour.light)
    ends = [0, *(machine.ledger_time_ns / time.unit.size)]
    if machine.kept_ns.any():
        ax.stairs(machine.kept_ns / unit.size, ends, color=_KEPT.colour.light)
    (lost,) = np.nonzero(machine.lost_frames.sum(axis=1))
    ax.plot(np.take(ends, lost + 1), 0 * lost, "x", color=_LOST.colour.light, clip_on=False)
    budget_ns = run.recording.fidelity.budget_ns
    ax.axhline(budget_ns / unit.size, linestyle="--", linewidth=1, color="0.5")
