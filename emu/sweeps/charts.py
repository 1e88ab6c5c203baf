"""The pictures of a sweep: lines with bands, heat maps, and a Pareto front.

Lines and maps show means over seeds; bands are the intervals of these means. Points of a grid are
joined by lines, random ones are dots. What a picture leaves out, its caption says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from emu.measure.bootstrap import Interval
from emu.report.charts.chart import INCH, Chart
from emu.report.figure import Axis, Figure, Plot
from emu.report.palette import CARD, FAINT, INK, LOAD, Colour, Legend, series_colour
from emu.report.run_figures import more_is_better
from emu.sweeps.axes import Scale, figure_axis, figure_scale, in_words, key_axis, key_scale
from emu.sweeps.results import pareto_front
from emu.sweeps.statistics import Place, intervals, places
from emu.sweeps.units import KeyColumn
from emu.words import listed

_WIDTH = INCH * 12.6
_HEIGHT = INCH * 3.4
MOST_SERIES = 8
MOST_PANELS = 4
_MOST_JOINED = 24
"""Values of a key whose points are joined by lines."""
_MOST_LABELLED = 24
"""Cells side by side that have room for their values."""


@dataclass(frozen=True)
class Swept:
    """The runs that gave figures, and what was varied."""

    runs: pd.DataFrame
    keys: Sequence[KeyColumn]
    """The varied keys with more than one value."""

    @property
    def numbers(self) -> list[KeyColumn]:
        """Keys with numbers, the one with the most values first."""
        own = [key for key in self.keys if key.is_number]
        return sorted(own, key=lambda key: -self.runs[key.name].nunique())

    @property
    def words(self) -> list[str]:
        """The columns that are no numbers: the variant, and keys with words."""
        named = ["variant"] if "variant" in self.runs and self.runs["variant"].nunique() > 1 else []
        return named + [key.name for key in self.keys if not key.is_number]

    @property
    def is_scattered(self) -> bool:
        """Whether points are random, so that hardly two have a value in common."""
        points = self.runs["point"].nunique()
        return any(
            self.runs[k.name].nunique() > max(_MOST_JOINED, points // 2) for k in self.numbers
        )


def charts(swept: Swept, columns: Sequence[str], pair: tuple[str, str] | None) -> Iterator[Chart]:
    """All pictures of these figures. `pair`: those of the Pareto front."""
    for column in columns:
        for key in swept.numbers:
            yield lines(swept, column, key)
        if len(swept.numbers) >= 2:
            yield heat_map(swept, column, swept.numbers[0], swept.numbers[1])
    if not swept.numbers and swept.words:
        yield from (bars(swept, column) for column in columns)
    if pair is not None and swept.runs["point"].nunique() > 2:
        yield front(swept, *pair)


def lines(swept: Swept, column: str, key: KeyColumn) -> Chart:
    """A figure over a key, a line for each combination of the others, or of the words alone if
    there are too many."""
    others = [*swept.words, *(own.name for own in swept.numbers if own.name != key.name)]
    by = _by(swept, others, MOST_SERIES)
    found = intervals(swept.runs, column, [key.name, *by])
    found = {place: own for place, own in found.items() if place[0] is not None}
    across = key_scale(key, [_number(place[0]) for place in found])
    up = figure_scale(column, [own.mean for own in found.values()])
    figure = Figure(
        [""],
        _WIDTH / 2,
        _HEIGHT,
        key_axis(across, [_number(place[0]) for place in found]),
        figure_axis(up, _ends(found.values())),
    )
    series = list(dict.fromkeys(place[1:] for place in found))
    for number, chosen in enumerate(series):
        own = sorted((_number(p[0]), found[p]) for p in found if p[1:] == chosen)
        _draw_line(figure.plots[0], own, (across, up), series_colour(number), swept.is_scattered)
    return Chart(
        title=f"{up.title} over {across.name}",
        svg=figure.svg(f"{up.title} over {across.title}"),
        legend=_legend(swept, by, series),
        caption=_left_out(swept, [name for name in others if name not in by]),
    )


def _left_out(swept: Swept, columns: Sequence[str]) -> str:
    """What a picture says about varied keys that it does not show."""
    if not columns:
        return ""
    keys = {key.name: key.key for key in swept.keys}
    names = listed([keys.get(name, name) for name in columns])
    if swept.is_scattered:
        return f"A dot is a point of the sweep; points differ in {names}, too."
    return f"Mean over all values of {names}."


def _draw_line(
    plot: Plot,
    points: Sequence[tuple[float, Interval]],
    scales: tuple[Scale, Scale],
    colour: Colour,
    scattered: bool,
) -> None:
    across, up = scales
    xs = [across.shown(x) for x, _ in points]
    ys = [up.shown(own.mean) for _, own in points]
    if not scattered:
        low = [up.shown(own.mean if own.low is None else own.low) for _, own in points]
        high = [up.shown(own.mean if own.high is None else own.high) for _, own in points]
        plot.ribbon(xs, low, high, colour)
        plot.line(xs, ys, colour)
    plot.dots(xs, ys, colour, radius=2.2)


def bars(swept: Swept, column: str) -> Chart:
    """A figure for each combination of words: a dot with its interval."""
    found = intervals(swept.runs, column, swept.words)
    scale = figure_scale(column, [own.mean for own in found.values()])
    labels = [(-float(n), _name(swept, swept.words, place)) for n, place in enumerate(found)]
    figure = Figure(
        [""],
        _WIDTH / 2,
        INCH * (0.7 + 0.3 * len(found)),
        figure_axis(scale, _ends(found.values())),
        Axis(0.5 - len(found), 0.5, labels=labels, grid=False),
    )
    (plot,) = figure.plots
    for number, own in enumerate(found.values()):
        if own.low is not None and own.high is not None:
            ends = [scale.shown(own.low), scale.shown(own.high)]
            plot.line(ends, [-number, -number], series_colour(number), thick=5)
        plot.dots([scale.shown(own.mean)], [-number], INK, radius=2.6)
    return Chart(title=scale.title, svg=figure.svg(scale.title))


def heat_map(swept: Swept, column: str, x: KeyColumn, y: KeyColumn) -> Chart:
    """A figure over two keys by colour, a panel for each combination of the words."""
    by = _by(swept, swept.words, MOST_PANELS)
    found = intervals(swept.runs, column, [x.name, y.name, *by])
    found = {place: own for place, own in found.items() if None not in place[:2]}
    scale = figure_scale(column, [own.mean for own in found.values()])
    panels = list(dict.fromkeys(place[2:] for place in found))
    titles = [_name(swept, by, panel) for panel in panels]
    xs, ys = (_cells(key, {_number(place[n]) for place in found}) for n, key in enumerate((x, y)))
    figure = Figure(titles, _WIDTH, _HEIGHT, xs.axis, ys.axis)
    bounds = _bounds([own.mean for own in found.values()])
    few = len(panels) * len(xs.numbers) <= _MOST_LABELLED
    for panel, plot in zip(panels, figure.plots, strict=True):
        for place, own in found.items():
            if place[2:] == panel:
                at = xs.at(_number(place[0])), ys.at(_number(place[1]))
                step = _step(own.mean, bounds)
                if xs.of or ys.of:
                    plot.dots([at[0]], [at[1]], LOAD[step], radius=4)
                else:
                    _draw_cell(plot, at, step, f"{scale.shown(own.mean):.4g}" if few else "")
    left = [key.name for key in swept.numbers if key not in (x, y)]
    left += [name for name in swept.words if name not in by]
    return Chart(
        title=f"{scale.title} over {x.key} and {y.key}",
        svg=figure.svg(f"{scale.title} over {x.key} and {y.key}"),
        legend=_steps_legend(scale, bounds),
        caption=_left_out(swept, left),
        is_wide=True,
    )


@dataclass(frozen=True)
class _Cells:
    """An axis of a heat map: a cell for each value, or with `of` a scale with any value."""

    axis: Axis
    numbers: Mapping[float, int]
    of: Scale | None

    def at(self, value: float) -> float:
        return float(self.numbers[value]) if self.of is None else self.of.shown(value)


def _draw_cell(plot: Plot, at: tuple[float, float], step: int, text: str) -> None:
    """A cell around a point, with its value in it."""
    x, y = at
    plot.bar((x - 0.48, x + 0.48), y, 0.94, LOAD[step])
    plot.label(x, y, text, INK if step < len(LOAD) / 2 else CARD)


def _cells(key: KeyColumn, values: set[float]) -> _Cells:
    scale, given = key_scale(key, values), sorted(values)
    if len(given) > _MOST_JOINED:
        return _Cells(key_axis(scale, given), {}, scale)
    labels = [(float(n), f"{scale.shown(value):g}") for n, value in enumerate(given)]
    axis = Axis(-0.5, len(given) - 0.5, scale.title, labels=labels, grid=False)
    return _Cells(axis, {value: n for n, value in enumerate(given)}, None)


def _bounds(values: Sequence[float]) -> list[float]:
    """The ends of the six ranges of a colour each."""
    low, high = min(values), max(values)
    return [low + (high - low) * n / len(LOAD) for n in range(len(LOAD) + 1)]


def _step(value: float, bounds: Sequence[float]) -> int:
    return min(len(LOAD) - 1, sum(value >= bound for bound in bounds[1:]))


def _steps_legend(scale: Scale, bounds: Sequence[float]) -> tuple[Legend, ...]:
    ends = [f"{scale.shown(bound):.4g}" for bound in bounds]
    if ends[0] == ends[-1]:
        return (Legend(f"{ends[0]} {scale.unit.name}", LOAD[0]),)
    pairs = zip(ends, ends[1:], LOAD, strict=False)
    return tuple(
        Legend(f"{low} to {high} {scale.unit.name}", colour) for low, high, colour in pairs
    )


def front(swept: Swept, one: str, other: str) -> Chart:
    """The points by two figures, and the front of those that no other point beats in both."""
    points = front_points(swept, one, other)
    scales = figure_scale(one, points[one]), figure_scale(other, points[other])
    figure = Figure(
        [""],
        _WIDTH,
        _HEIGHT * 1.2,
        figure_axis(scales[0], points[one].tolist()),
        figure_axis(scales[1], points[other].tolist()),
    )
    (plot,) = figure.plots
    groups = _by(swept, swept.words, MOST_SERIES)
    series = list(dict.fromkeys(places(points, groups)))
    best = points[points["front"]].sort_values(one)
    plot.line(
        [scales[0].shown(value) for value in best[one]],
        [scales[1].shown(value) for value in best[other]],
        INK,
        dash="5 3",
    )
    for number, group in enumerate(series):
        own = points[[place == group for place in places(points, groups)]]
        for on_front, radius in ((False, 2.0), (True, 4.0)):
            chosen = own[own["front"] == on_front]
            plot.dots(
                [scales[0].shown(value) for value in chosen[one]],
                [scales[1].shown(value) for value in chosen[other]],
                series_colour(number),
                radius=radius,
            )
    wishes = [
        f"{'higher' if more_is_better(name) else 'lower'} {scale.name}"
        for name, scale in zip((one, other), scales, strict=True)
    ]
    return Chart(
        title=f"Pareto front: {scales[0].title} and {scales[1].title}",
        svg=figure.svg(f"Pareto front of {scales[0].title} and {scales[1].title}"),
        legend=(*_legend(swept, groups, series), Legend("Pareto front (large dots)", FAINT)),
        caption=f"A dot is the mean of a point over its seeds. Better is a {wishes[0]}, and "
        f"a {wishes[1]}; no point beats one of the front in both.",
        is_wide=True,
    )


def front_points(swept: Swept, one: str, other: str) -> pd.DataFrame:
    """A row for each point with both figures: its columns, the means, and whether it is on the
    `front`."""
    of_point = ["point", *swept.words, *(key.name for key in swept.numbers)]
    found = [intervals(swept.runs, column, of_point) for column in (one, other)]
    both = [place for place in found[0] if place in found[1]]
    rows = [(*place, found[0][place].mean, found[1][place].mean) for place in both]
    points = pd.DataFrame(rows, columns=[*of_point, one, other])
    best = pareto_front(
        points[one].tolist(),
        points[other].tolist(),
        more=(more_is_better(one), more_is_better(other)),
    )
    points["front"] = points.index.isin(best)
    return points


def _by(swept: Swept, columns: Sequence[str], most: int) -> list[str]:
    """The first of these columns whose combinations are not too many."""
    chosen: list[str] = []
    for name in columns:
        if len(set(places(swept.runs, [*chosen, name]))) <= most:
            chosen.append(name)
    return chosen


def _legend(swept: Swept, by: Sequence[str], series: Sequence[Place]) -> tuple[Legend, ...]:
    if not by:
        return ()
    return tuple(
        Legend(_name(swept, by, place), series_colour(n)) for n, place in enumerate(series)
    )


def _name(swept: Swept, by: Sequence[str], place: Place) -> str:
    """A combination in words: `ib, switches.ecn.kmin 50 KB`."""
    keys = {key.name: key for key in swept.keys}
    return ", ".join(
        f"{keys[name].key} {in_words(keys[name], value)}" if name in keys else str(value)
        for name, value in zip(by, place, strict=True)
    )


def _ends(found: Iterable[Interval]) -> list[float]:
    """All means and ends of intervals."""
    return [end for own in found for end in (own.mean, own.low, own.high) if end is not None]


def _number(value: object) -> float:
    return float(value)  # type: ignore[arg-type]
