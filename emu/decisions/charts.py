"""The pictures of a decision: each fabric's figure, cost beside it, and growth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from emu.decisions.choice import Evidence
from emu.measure.bootstrap import Interval
from emu.report.charts.chart import INCH, Chart
from emu.report.figure import Axis, Figure
from emu.report.palette import Legend, series_colour
from emu.sweeps.axes import Scale, figure_axis, figure_scale

if TYPE_CHECKING:
    from emu.decisions.decide import Decided

_WIDTH, _HEIGHT = INCH * 6.0, INCH * 3.4


def charts(decided: Decided) -> Iterator[Chart]:
    known = [own for own in decided.evidence.values() if own.standing.figure is not None]
    if not known:
        return
    column = decided.figures.deciding.figure.columns[0]
    scale = figure_scale(column, [_mean(own) for own in known])
    yield _bars(decided, known, scale)
    if any(own.bill for own in known):
        yield _beside_cost(decided, known, scale)
    if any(grown.size.settings for grown in decided.growth):
        yield _growth(decided, scale)


def _mean(own: Evidence) -> float:
    assert own.standing.figure is not None
    return own.standing.figure.mean


def _ends(own: Interval | None) -> list[float]:
    if own is None:
        return []
    return [own.mean if own.low is None else own.low, own.mean if own.high is None else own.high]


def _bars(decided: Decided, known: Sequence[Evidence], scale: Scale) -> Chart:
    values = [0.0, *(end for own in known for end in _ends(own.standing.figure))]
    labels = [(-float(place), own.name) for place, own in enumerate(known)]
    figure = Figure(
        [""],
        _WIDTH,
        INCH * (0.7 + 0.3 * len(known)),
        figure_axis(scale, values),
        Axis(0.5 - len(known), 0.5, labels=labels, grid=False),
    )
    (plot,) = figure.plots
    for place, own in enumerate(known):
        low, high = (scale.shown(end) for end in _ends(own.standing.figure))
        colour = series_colour(place)
        plot.line([low, high], [-place, -place], colour, thick=5)
        plot.dots([scale.shown(_mean(own))], [-place], colour, radius=4)
    title = decided.figures.deciding.name
    return Chart(
        title=f"{title}: all fabrics",
        svg=figure.svg(f"{title} of each fabric"),
        legend=(),
        caption="Means over the seeds, and their 95 % intervals.",
    )


def _beside_cost(decided: Decided, known: Sequence[Evidence], scale: Scale) -> Chart:
    priced = [(own, own.bill) for own in known if own.bill is not None]
    currency = priced[0][1].currency
    most = max(bill.total for _, bill in priced) or 1.0
    figure = Figure(
        [""],
        _WIDTH,
        _HEIGHT,
        Axis(0, 1.1 * most, f"cost ({currency})"),
        figure_axis(scale, [0.0, *(_mean(own) for own, _ in priced)]),
    )
    for place, (own, bill) in enumerate(priced):
        figure.plots[0].dots(
            [bill.total], [scale.shown(_mean(own))], series_colour(place), radius=4.5
        )
    title = decided.figures.deciding.name
    return Chart(
        title=f"{title} and cost",
        svg=figure.svg(f"{title} over cost"),
        legend=tuple(Legend(own.name, series_colour(n)) for n, (own, _) in enumerate(priced)),
        caption="A dot for each fabric. Prices are those of the user's file.",
    )


def _growth(decided: Decided, scale: Scale) -> Chart:
    goal, names = decided.figures.deciding, list(decided.evidence)
    spec = next(iter(decided.evidence.values())).candidate.spec
    hosts = len(spec.topology.build().host)
    sizes = [(hosts, {name: own.standing for name, own in decided.evidence.items()})]
    sizes += [(own.size.hosts, dict(own.standings)) for own in decided.growth if own.size.settings]
    points = {
        name: [
            (count, standing.figure.mean)
            for count, standings in sizes
            if (standing := standings[name]).fits and standing.figure is not None
        ]
        for name in names
    }
    values = [value for own in points.values() for _, value in own]
    scale = figure_scale(goal.figure.columns[0], values)
    counts = [count for count, _ in sizes]
    figure = Figure(
        [""],
        _WIDTH,
        _HEIGHT,
        Axis(
            min(counts) / 1.1,
            max(counts) * 1.1,
            "hosts",
            labels=[(count, f"{count:,}") for count in dict.fromkeys(counts)],
            is_log=True,
        ),
        figure_axis(scale, [0.0, *values]),
    )
    for place, (_, own) in enumerate(points.items()):
        xs, ys = [count for count, _ in own], [scale.shown(value) for _, value in own]
        figure.plots[0].line(xs, ys, series_colour(place))
        figure.plots[0].dots(xs, ys, series_colour(place), radius=3)
    return Chart(
        title=f"{goal.name} as the cluster grows",
        svg=figure.svg(f"{goal.name} over the number of hosts"),
        legend=tuple(Legend(name, series_colour(place)) for place, name in enumerate(names)),
        caption="The table says which sizes are by packets, and which by the flow model.",
    )
