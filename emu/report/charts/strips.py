"""Strips: many small curves, each in its own row.

    h2  ▂▂▂▂▂▂▂▂▂│
    h3  ▂▂▂▂▂▂▂▂▂▂│
    h5  ███│

The curves never overlap. A reader compares flows of one run down a column, and one flow on
several fabrics along a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emu.measure.binning import Floats, bin_edges
from emu.report.charts.chart import TimeAxis, side_by_side
from emu.report.figure import Axis, Figure, Plot
from emu.report.palette import GRID, INK, Colour
from emu.report.run_view import RunFacts

BINS = 60
"""Bins along the time axis. They are few, because a rate needs several packets in each."""
_ROWS_INCHES, _ROW_INCHES, _ASIDE_INCHES = 3.6, (0.3, 0.5), 0.75
"""The height of all rows together; the least and the greatest height of one row; and the height of
titles and time axis."""
_FILLED = 0.86
"""The part of a row's height that a curve fills. The rest separates it from the row above."""


@dataclass(frozen=True)
class Strip:
    """A curve over the bins, and the range of values around it."""

    middle: Floats
    low: Floats
    high: Floats
    colour: Colour
    end_ns: int | None = None
    """When the last of its flows finished, which a vertical line marks."""


Row = Sequence[Strip | None]
"""The strip of each run; None where the run has no such flow or port."""


def stack(runs: Sequence[RunFacts], rows: Mapping[str, Row], time: TimeAxis, top: float) -> Figure:
    """A figure with these rows, by label, from top to bottom. `top` is the value that fills a
    row."""
    lowest, highest = _ROW_INCHES
    row_inches = min(highest, max(lowest, _ROWS_INCHES / len(rows)))
    floors = list(reversed(range(len(rows))))
    labels = [(floor + 0.25, label) for floor, label in zip(floors, rows, strict=True)]
    y = Axis(0, len(rows), labels=labels, grid=False)
    figure = side_by_side(runs, _ASIDE_INCHES + row_inches * len(rows), time, y)
    for floor, row in zip(floors, rows.values(), strict=True):
        for plot, strip in zip(figure.plots, row, strict=True):
            plot.line((0, plot.x.high), (floor, floor), GRID, thick=0.6)
            if strip is not None:
                _draw(plot, strip, floor, time, _FILLED / top)
    return figure


def _draw(plot: Plot, strip: Strip, floor: int, time: TimeAxis, scale: float) -> None:
    edges = bin_edges(0, time.end_ns, BINS) / time.unit.size
    low, middle, high = (floor + values * scale for values in (strip.low, strip.middle, strip.high))
    plot.band(edges, low, high, strip.colour, opacity=0.35)
    plot.step_line(edges, middle, strip.colour, thick=1.1)
    if strip.end_ns is not None:
        end = strip.end_ns / time.unit.size
        plot.line((end, end), (floor, floor + _FILLED), INK, thick=1.0)
