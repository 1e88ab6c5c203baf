"""FCT slowdown over the size of messages: as papers on congestion control draw it.

slowdown │            ●─●     99 %
         │   ●──●──●──
         │         ○──○──○    50 %
       1 ┼───○──○──
           6 KB ...  30 MB    as many messages between one mark and the next
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from emu.measure.fct import FctSlowdown
from emu.report.charts.chart import Chart, width_inches
from emu.report.facts import RunFacts
from emu.report.figure import inline_svg
from emu.report.palette import Colour, Legend, series_colour
from emu.units import format_size


def fct(runs: Sequence[RunFacts]) -> Chart | None:
    """A row for each background load; None where there is none."""
    loads = list(dict.fromkeys(own.traffic for run in runs for own in run.fct_slowdowns))
    if not loads:
        return None
    size = (width_inches(runs), 2.6 * len(loads))
    figure = Figure(figsize=size, layout="constrained")
    for ax, load in zip(figure.subplots(len(loads), squeeze=False)[:, 0], loads, strict=True):
        for place, run in enumerate(runs):
            for own in run.fct_slowdowns:
                if own.traffic == load:
                    _draw(ax, own, series_colour(place))
        _label(ax, load)
    return Chart(
        title="FCT slowdown",
        svg=inline_svg(figure, "Completion times over those on idle paths, by size"),
        legend=tuple(Legend(run.name, series_colour(place)) for place, run in enumerate(runs)),
        caption="Completion time over that of the same message alone, a tenth of the messages at "
        "each mark: the line is the median, the dashed one above it 99 %.",
    )


def _draw(ax: Axes, slowdown: FctSlowdown, colour: Colour) -> None:
    places = range(len(slowdown.buckets))
    medians, tails = zip(*((own.p50, own.p99) for own in slowdown.buckets), strict=True)
    ax.plot(places, medians, color=colour.light, marker="o", markersize=3)
    ax.plot(places, tails, color=colour.light, marker="o", markersize=3, linestyle="--")
    ax.set_xticks(places, [format_size(own.up_to_bytes) for own in slowdown.buckets])


def _label(ax: Axes, load: str) -> None:
    ax.set_xlabel(f"messages of {load} up to")
    ax.set_ylabel("slowdown")
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
