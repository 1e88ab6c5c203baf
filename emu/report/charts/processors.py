"""Who had the machine's processors over the run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from emu.report.charts.chart import Chart, TimeAxis, side_by_side, time_axis
from emu.report.facts import RunFacts
from emu.report.figure import inline_svg
from emu.report.palette import Legend, series_colour
from emu.report.words import user_of_processors


def processors(runs: Sequence[RunFacts]) -> Chart | None:
    """None where nobody looked, as on the virtual clock."""
    users = list(dict.fromkeys(user for run in runs for user in run.recording.machine.cpu_users))
    if not users:
        return None
    time = time_axis(runs)
    figure, axes = side_by_side(runs, 2.0, time)
    for run, ax in zip(runs, axes, strict=True):
        _draw(ax, run, time, users)
    axes[0].set_ylabel("processors busy")
    axes[0].set_ylim(bottom=0)
    return Chart(
        title="Who had the processors",
        svg=inline_svg(figure, "Processors in use over time"),
        legend=tuple(
            Legend(user_of_processors(user), series_colour(place))
            for place, user in enumerate(users)
        ),
        caption="Between two looks each, one upon the other.",
    )


def _draw(ax: Axes, run: RunFacts, time: TimeAxis, users: Sequence[str]) -> None:
    """The times of looks are emulated, the processor time is not."""
    machine = run.recording.machine
    lasted_ns = np.diff(machine.cpu_time_ns) * run.recording.slowdown
    below = np.zeros(len(lasted_ns))
    for user, used_ns in zip(machine.cpu_users, machine.cpu_ns.T, strict=True):
        busy = np.diff(used_ns).clip(min=0) / lasted_ns
        colour = series_colour(users.index(user)).light
        ends = machine.cpu_time_ns / time.unit.size
        ax.stairs(below + busy, ends, baseline=below, fill=True, color=colour)
        below = below + busy
