"""Which programs used the machine's processors over the run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from emu.measure.binning import Floats
from emu.report.charts.chart import Chart, side_by_side, time_axis
from emu.report.figure import Axis, Plot
from emu.report.palette import Legend, series_colour
from emu.report.phrases import user_of_processors
from emu.report.run_view import RunFacts


def processors(runs: Sequence[RunFacts]) -> Chart | None:
    """The chart of processor time; None when it was not measured, as on the virtual clock."""
    users = list(dict.fromkeys(user for run in runs for user in run.recording.machine.cpu_users))
    if not users:
        return None
    time = time_axis(runs)
    busy = [_busy(run, users) for run in runs]
    highest = max((float(own[-1].max(initial=0)) for own in busy), default=0.0)
    figure = side_by_side(runs, 2.0, time, Axis(0, 1.05 * highest or 1.0, "processors busy"))
    for run, own, plot in zip(runs, busy, figure.plots, strict=True):
        _draw(plot, own, run.recording.machine.cpu_time_ns / time.unit.size)
    return Chart(
        title="Processor time by user",
        svg=figure.svg("Processors in use over time"),
        legend=tuple(
            Legend(user_of_processors(user), series_colour(place))
            for place, user in enumerate(users)
        ),
        caption="Means between two samples, stacked.",
    )


def _busy(run: RunFacts, users: Sequence[str]) -> list[Floats]:
    """Busy processors between two samples, as running sums: of no user, of the first user, of the
    first two, and so on.

    The times of samples are emulated, the processor time is not.
    """
    machine = run.recording.machine
    lasted_ns = np.diff(machine.cpu_time_ns) * run.recording.slowdown
    used = dict(zip(machine.cpu_users, machine.cpu_ns.T, strict=True))
    sums = [np.zeros(len(lasted_ns))]
    for user in users:
        own = np.diff(used[user]).clip(min=0) / lasted_ns if user in used else 0.0
        sums.append(sums[-1] + own)
    return sums


def _draw(plot: Plot, busy: Sequence[Floats], ends: Floats) -> None:
    for place, (below, above) in enumerate(pairwise(busy)):
        if len(above):
            plot.band(ends, below, above, series_colour(place))
