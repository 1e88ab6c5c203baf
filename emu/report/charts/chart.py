"""What all charts share: a chart as data, and axes that several runs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from emu.report.figure import Axis, Figure
from emu.report.palette import Legend
from emu.report.run_view import RunFacts
from emu.report.scale import Unit, time_unit

AFTER_THE_END = 1.02
"""Time axes end a little after the last thing that happened in any run."""
INCH = 72.0


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

    @property
    def axis(self) -> Axis:
        return Axis(0, self.end_ns / self.unit.size, f"time ({self.unit.name})")


def time_axis(runs: Sequence[RunFacts]) -> TimeAxis:
    end_ns = max(1, *(round(run.window_ns[1] * AFTER_THE_END) for run in runs))
    return TimeAxis(end_ns, time_unit(end_ns))


def width_points(runs: Sequence[RunFacts]) -> float:
    """One run has half of the page's width, several have all of it."""
    return INCH * (6.0 if len(runs) == 1 else 12.6)


def side_by_side(runs: Sequence[RunFacts], height_inches: float, time: TimeAxis, y: Axis) -> Figure:
    """A figure with one plot for each run, on the same scales."""
    titles = [run.name if len(runs) > 1 else "" for run in runs]
    return Figure(titles, width_points(runs), INCH * height_inches, time.axis, y)


def left_out(what: str, shown: int, there_are: int, which: str) -> str:
    """A sentence for the caption, if anything was left out."""
    return f"Of {there_are} {what}, {which} {shown} are shown." if shown < there_are else ""
