"""When each flow was over: bars for a few flows, a distribution for many.

Unfinished flows are drawn as outlines, and keep a distribution below 100 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from emu.report.charts.chart import Chart, time_axis, width_inches
from emu.report.facts import RunFacts
from emu.report.figure import inline_svg
from emu.report.palette import BAD, INK, Colour, Legend, series_colour
from emu.report.scale import Unit

MOST_BARS = 16
"""Flows beyond which there is a distribution instead."""


@dataclass(frozen=True)
class Lane:
    """Where a run's bars are within the row of a flow, which is 1 high."""

    place: int
    lanes: int

    @property
    def height(self) -> float:
        return 0.7 / self.lanes

    @property
    def offset(self) -> float:
        return (self.place + 0.5) * 0.8 / self.lanes - 0.4


def completion(runs: Sequence[RunFacts]) -> Chart | None:
    """None when there is no flow."""
    flows = list(dict.fromkeys(flow.name for run in runs for flow in run.flows))
    if not flows:
        return None
    colours = {run.name: series_colour(place) for place, run in enumerate(runs)}
    unit = time_axis(runs).unit
    few = len(flows) <= MOST_BARS
    height = 0.7 + (0.14 + 0.1 * len(runs)) * len(flows) if few else 2.6
    figure = Figure(figsize=(width_inches(runs), height), layout="constrained")
    ax = figure.subplots()
    for lane, run in enumerate(runs):
        if few:
            _draw_bars(ax, run, flows, Lane(lane, len(runs)), colours[run.name], unit)
        else:
            _draw_distribution(ax, run, colours[run.name], unit)
        _draw_bound(ax, run, colours[run.name], unit)
    _label(ax, flows if few else [], unit)
    return Chart(
        title="Completion",
        svg=inline_svg(figure, "When each flow was over"),
        legend=tuple(Legend(run.name, colours[run.name]) for run in runs),
        caption=("From start to end of each flow; " if few else "Share of all flows; ")
        + "the dashed line is the arithmetic bound for the last one.",
    )


def _label(ax: Axes, flows: Sequence[str], unit: Unit) -> None:
    ax.set_xlabel(f"time ({unit.name})")
    ax.set_xlim(left=0)
    if flows:
        ax.set_yticks(range(len(flows)), flows)
        ax.set_ylim(len(flows) - 0.5, -0.5)
        ax.tick_params(axis="y", length=0, labelcolor=INK.light)
        ax.grid(visible=False, axis="y")
    else:
        ax.set_ylabel("flows over (%)")
        ax.set_ylim(0, 103)


def _draw_bound(ax: Axes, run: RunFacts, colour: Colour, unit: Unit) -> None:
    if run.bound is not None:
        bound = run.bound.last_finish_ns / unit.size
        ax.axvline(bound, color=colour.light, linewidth=1.0, linestyle=(0, (4, 3)))


def _draw_bars(
    ax: Axes, run: RunFacts, flows: Sequence[str], lane: Lane, colour: Colour, unit: Unit
) -> None:
    for flow in run.flows:
        y = flows.index(flow.name) + lane.offset
        start = flow.start_ns / unit.size
        end = (run.window_ns[1] if flow.end_ns is None else flow.end_ns) / unit.size
        ax.barh(y, end - start, lane.height, left=start, color=colour.light, fill=flow.completed)
        if not flow.completed:
            ax.text(end, y, " unfinished", va="center", color=BAD.light)


def _draw_distribution(ax: Axes, run: RunFacts, colour: Colour, unit: Unit) -> None:
    """Share of all offered flows that are over, with a step at each end."""
    ends = sorted(flow.end_ns for flow in run.flows if flow.completed and flow.end_ns is not None)
    shares = np.arange(len(ends) + 1) * 100 / len(run.flows)
    times = np.array([0, *ends, run.window_ns[1]])
    ax.stairs(shares, times / unit.size, baseline=None, color=colour.light)
