"""What all charts share: a chart as data, and axes that several runs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from emu.report.facts import RunFacts
from emu.report.palette import Legend
from emu.report.scale import Unit, time_unit

AFTER_THE_END = 1.02
"""Time axes end a little after the last thing that happened in any run."""


@dataclass(frozen=True)
class Chart:
    """A picture with its title, the meaning of its colours, and a sentence below."""

    title: str
    svg: Markup
    legend: tuple[Legend, ...] = ()
    caption: str = ""


@dataclass(frozen=True)
class TimeAxis:
    """The time axis that all runs of a chart share."""

    end_ns: int
    unit: Unit


def time_axis(runs: Sequence[RunFacts]) -> TimeAxis:
    end_ns = max(round(run.window_ns[1] * AFTER_THE_END) for run in runs)
    return TimeAxis(end_ns, time_unit(end_ns))


def width_inches(runs: Sequence[RunFacts]) -> float:
    """One run has half of the page's width, several have all of it."""
    return 6.0 if len(runs) == 1 else 12.6


def side_by_side(
    runs: Sequence[RunFacts], height_inches: float, time: TimeAxis
) -> tuple[Figure, list[Axes]]:
    """A figure with one plot for each run, on the same scales."""
    figure = Figure(figsize=(width_inches(runs), height_inches), layout="constrained")
    axes: list[Axes] = figure.subplots(1, len(runs), sharex=True, sharey=True, squeeze=False)[0]
    for run, ax in zip(runs, axes, strict=True):
        ax.set_title(run.name if len(runs) > 1 else "")
        ax.set_xlabel(f"time ({time.unit.name})")
    axes[0].set_xlim(0, time.end_ns / time.unit.size)
    return figure, axes


def left_out(what: str, shown: int, there_are: int, which: str) -> str:
    """A sentence for the caption, if anything was left out."""
    return f"Of {there_are} {what}, {which} {shown} are shown." if shown < there_are else ""
