"""A chart as data, and the axes that several runs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from emu.report.figure import Axis, Figure
from emu.report.palette import Legend
from emu.report.run_view import RunFacts
from emu.report.scale import Unit, time_unit

AFTER_THE_END = 1.02
"""A time axis is longer than the longest run by this factor."""
INCH = 72.0


@dataclass(frozen=True)
class Chart:
    """A picture with its title, the meaning of its colours, and a caption."""

    title: str
    svg: Markup
    legend: tuple[Legend, ...] = ()
    caption: str = ""
    is_wide: bool = False
    """Whether it takes the whole width of a page that shows others side by side."""


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
    """The width of a chart: half of the page for one run, the whole page for several."""
    return INCH * (6.0 if len(runs) == 1 else 12.6)


def side_by_side(runs: Sequence[RunFacts], height_inches: float, time: TimeAxis, y: Axis) -> Figure:
    """A figure with one plot for each run, on the same scales."""
    titles = [run.name if len(runs) > 1 else "" for run in runs]
    return Figure(titles, width_points(runs), INCH * height_inches, time.axis, y)


def left_out(what: str, shown: int, there_are: int, which: str) -> str:
    """A sentence for the caption; empty when everything is shown."""
    return f"Of {there_are} {what}, {which} {shown} are shown." if shown < there_are else ""
