"""Completion times of flows: bars for a few flows, a cumulative distribution for many.

The bars of unfinished flows are outlines. A distribution with unfinished flows stays below 100 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emu.report.charts.chart import INCH, Chart, time_axis, width_points
from emu.report.figure import Axis, Figure, Plot
from emu.report.palette import BAD, Colour, Legend, series_colour
from emu.report.run_view import RunFacts
from emu.report.scale import Unit

MOST_BARS = 16
"""With more flows than this, a distribution replaces the bars."""
MOST_STEPS = 400
"""The most steps of a distribution, which is more than the axis can show."""


@dataclass(frozen=True)
class Lane:
    """The place of one run's bars within the row of a flow. A row has height 1."""

    place: int
    lanes: int

    @property
    def height(self) -> float:
        return 0.7 / self.lanes

    @property
    def offset(self) -> float:
        return (self.place + 0.5) * 0.8 / self.lanes - 0.4


def completion(runs: Sequence[RunFacts]) -> Chart | None:
    """The chart of completion times; None when no run has flows."""
    flows = list(dict.fromkeys(flow.name for run in runs for flow in run.flows))
    if not flows:
        return None
    colours = {run.name: series_colour(place) for place, run in enumerate(runs)}
    unit = time_axis(runs).unit
    few = len(flows) <= MOST_BARS
    height = 0.7 + (0.14 + 0.1 * len(runs)) * len(flows) if few else 2.6
    y = _flows_axis(flows) if few else Axis(0, 103, "finished flows (%)")
    x = Axis(0, 1.08 * _last_ns(runs) / unit.size, f"time ({unit.name})")
    figure = Figure([""], width_points(runs), INCH * height, x, y)
    (plot,) = figure.plots
    for lane, run in enumerate(runs):
        if few:
            _draw_bars(plot, run, flows, Lane(lane, len(runs)), colours[run.name], unit)
        else:
            _draw_distribution(plot, run, colours[run.name], unit)
        _draw_bound(plot, run, colours[run.name], unit)
    return Chart(
        title="Completion",
        svg=figure.svg("Completion times of the flows"),
        legend=tuple(Legend(run.name, colours[run.name]) for run in runs),
        caption=(
            "From start to end of each flow; " if few else "Share of all flows that finished; "
        )
        + "the dashed line is the arithmetic bound for the last flow.",
    )


def _flows_axis(flows: Sequence[str]) -> Axis:
    """An axis with a label for each flow. The first flow is at the top: at 0, the next at -1."""
    labels = [(-float(place), flow) for place, flow in enumerate(flows)]
    return Axis(0.5 - len(flows), 0.5, labels=labels, grid=False)


def _last_ns(runs: Sequence[RunFacts]) -> float:
    bounds = [run.bound.last_finish_ns for run in runs if run.bound is not None]
    return max(1, *(run.window_ns[1] for run in runs), *bounds)


def _draw_bound(plot: Plot, run: RunFacts, colour: Colour, unit: Unit) -> None:
    if run.bound is not None:
        bound = run.bound.last_finish_ns / unit.size
        plot.line((bound, bound), (plot.y.low, plot.y.high), colour, dash="4 3", thick=1.0)


def _draw_bars(
    plot: Plot, run: RunFacts, flows: Sequence[str], lane: Lane, colour: Colour, unit: Unit
) -> None:
    for flow in run.flows:
        y = -flows.index(flow.name) - lane.offset
        start = flow.start_ns / unit.size
        end = (run.window_ns[1] if flow.end_ns is None else flow.end_ns) / unit.size
        plot.bar((start, end), y, lane.height, colour, filled=flow.completed)
        if not flow.completed:
            plot.text(end, y, " unfinished", BAD)


def _draw_distribution(plot: Plot, run: RunFacts, colour: Colour, unit: Unit) -> None:
    """The share of all offered flows that have finished, over time. Each finish is a step; with
    more than `MOST_STEPS` of them, several share a step."""
    ends = sorted(flow.end_ns for flow in run.flows if flow.completed and flow.end_ns is not None)
    counts = np.unique(np.linspace(0, len(ends), min(len(ends), MOST_STEPS) + 1).astype(int))
    times = [0, *(ends[count - 1] for count in counts[1:]), run.window_ns[1]]
    plot.step_line(np.array(times) / unit.size, counts * 100 / len(run.flows), colour)
