"""FCT slowdown over message size, as papers on congestion control draw it.

slowdown │            ●─●     99 %
         │   ●──●──●──
         │         ○──○──○    50 %
       1 ┼───○──○──
           6 KB ...  30 MB    the same number of messages between two marks
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emu.measure.fct import FctSlowdown
from emu.report.charts.chart import INCH, Chart, width_points
from emu.report.figure import Axis, Figure, Plot, stacked
from emu.report.palette import Colour, Legend, series_colour
from emu.report.run_view import RunFacts
from emu.units import format_size


def fct(runs: Sequence[RunFacts]) -> Chart | None:
    """A row for each background load; None when the runs have no background load."""
    loads = list(dict.fromkeys(own.traffic for run in runs for own in run.fct_slowdowns))
    if not loads:
        return None
    figures = [_figure(runs, load) for load in loads]
    return Chart(
        title="FCT slowdown",
        svg=stacked(figures, "FCT slowdown by message size"),
        legend=tuple(Legend(run.name, series_colour(place)) for place, run in enumerate(runs)),
        caption="Completion time divided by that of the same message on idle paths. Each mark "
        "stands for a tenth of the messages. The solid line is the median, the dashed line 99 %.",
    )


def _figure(runs: Sequence[RunFacts], load: str) -> Figure:
    drawn = [
        (own, series_colour(place))
        for place, run in enumerate(runs)
        for own in run.fct_slowdowns
        if own.traffic == load
    ]
    sizes = [format_size(own.up_to_bytes) for own in drawn[-1][0].buckets]
    x = Axis(-0.3, len(sizes) - 0.7, f"messages of {load} up to", list(enumerate(sizes)))
    figure = Figure([""], width_points(runs), 2.6 * INCH, x, _slowdowns([own for own, _ in drawn]))
    for own, colour in drawn:
        _draw(figure.plots[0], own, colour)
    return figure


def _slowdowns(drawn: Sequence[FctSlowdown]) -> Axis:
    values = [value for own in drawn for _, *both in _points(own) for value in both]
    return Axis(
        0.95 * min(values, default=1), 1.1 * max(values, default=10), "slowdown", is_log=True
    )


def _points(slowdown: FctSlowdown) -> Iterator[tuple[int, float, float]]:
    """Place, median and 99th percentile of each bucket in which a message finished."""
    for place, bucket in enumerate(slowdown.buckets):
        if bucket.p50 is not None and bucket.p99 is not None:
            yield place, bucket.p50, bucket.p99


def _draw(plot: Plot, slowdown: FctSlowdown, colour: Colour) -> None:
    points = list(_points(slowdown))
    if not points:
        return
    places, medians, tails = zip(*points, strict=True)
    for values, dash in ((medians, ""), (tails, "4 3")):
        plot.line(places, values, colour, dash=dash)
        plot.dots(places, values, colour)
