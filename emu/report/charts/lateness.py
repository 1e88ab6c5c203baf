"""How late frames left over the run: where the machine had a hiccup, if it had one."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from emu.report.charts.chart import Chart, TimeAxis, side_by_side, time_axis
from emu.report.facts import RunFacts
from emu.report.figure import inline_svg
from emu.report.palette import series_colour
from emu.report.scale import Unit
from emu.report.scale import time_unit as fitting_unit


def lateness(runs: Sequence[RunFacts]) -> Chart | None:
    """None when nothing was late, as on the virtual clock."""
    worst_ns = max((int(run.recording.series.late_ns.max(initial=0)) for run in runs), default=0)
    if not worst_ns:
        return None
    time, unit = time_axis(runs), fitting_unit(worst_ns)
    figure, axes = side_by_side(runs, 2.0, time)
    for run, ax in zip(runs, axes, strict=True):
        _draw(ax, run, time, unit)
    axes[0].set_ylabel(f"lateness ({unit.name})")
    axes[0].set_ylim(bottom=0)
    return Chart(
        title="How late frames left",
        svg=inline_svg(figure, "The worst lateness over time"),
        caption="The latest frame of each moment, in emulated time. "
        "The dashed line is the budget, which 99 of 100 frames must keep.",
    )


def _draw(ax: Axes, run: RunFacts, time: TimeAxis, unit: Unit) -> None:
    series, budget_ns = run.recording.series, run.recording.fidelity.budget_ns
    edges = [0, *(series.late_time_ns / time.unit.size)]
    ax.stairs(series.late_ns / unit.size, edges, fill=True, color=series_colour(0).light)
    ax.axhline(budget_ns / unit.size, linestyle="--", linewidth=1, color="0.5")
