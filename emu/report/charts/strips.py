"""Strips: many small curves below each other, each with a row of its own.

    h2  ▂▂▂▂▂▂▂▂▂│
    h3  ▂▂▂▂▂▂▂▂▂▂│
    h5  ███│

Nothing covers anything, however many there are, and the eye compares down a
column (flows of one run) and along a row (one flow on several fabrics).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from emu.measure.binning import Floats, bin_edges
from emu.report.charts.chart import TimeAxis, side_by_side
from emu.report.facts import RunFacts
from emu.report.palette import INK, Colour

BINS = 60
"""Along the time axis: few, because a rate needs several packets in each."""
_ROWS_INCHES, _ROW_INCHES, _ASIDE_INCHES = 3.6, (0.3, 0.5), 0.75
"""All rows share a height, within limits for one row; and there are titles and the time axis."""
_FILLED = 0.86
"""Of a row's height; the rest keeps it apart from the row above."""


@dataclass(frozen=True)
class Strip:
    """A curve over the bins, and the range it stands for."""

    middle: Floats
    low: Floats
    high: Floats
    colour: Colour
    end_ns: int | None = None
    """When what it shows was over; marked by a line."""


Row = Sequence[Strip | None]
"""The strip of each run; None where the run has nothing there."""


def stack(runs: Sequence[RunFacts], rows: Mapping[str, Row], time: TimeAxis, top: float) -> Figure:
    """`rows` by label, first at the top. `top` is the value that fills a row."""
    lowest, highest = _ROW_INCHES
    row_inches = min(highest, max(lowest, _ROWS_INCHES / len(rows)))
    figure, axes = side_by_side(runs, _ASIDE_INCHES + row_inches * len(rows), time)
    floors = list(reversed(range(len(rows))))
    for floor, row in zip(floors, rows.values(), strict=True):
        for ax, strip in zip(axes, row, strict=True):
            if strip is not None:
                _draw(ax, strip, floor, time, _FILLED / top)
    for ax in axes:
        ax.grid(visible=False, axis="x")
        ax.tick_params(axis="y", length=0, labelcolor=INK.light)
        ax.spines["left"].set_visible(False)
    axes[0].set_yticks(floors, list(rows), va="bottom")
    axes[0].set_ylim(0, len(rows))
    return figure


def _draw(ax: Axes, strip: Strip, floor: int, time: TimeAxis, scale: float) -> None:
    edges = bin_edges(0, time.end_ns, BINS) / time.unit.size
    low, middle, high = (floor + values * scale for values in (strip.low, strip.middle, strip.high))
    colour = strip.colour.light
    ax.stairs(high, edges, baseline=low, fill=True, color=colour, alpha=0.35, linewidth=0)
    ax.stairs(middle, edges, baseline=None, color=colour, linewidth=1.1)
    if strip.end_ns is not None:
        end = strip.end_ns / time.unit.size
        ax.vlines(end, floor, floor + _FILLED, color=INK.light, linewidth=1.0)
