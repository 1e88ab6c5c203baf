"""Plots as inline SVG, in the colours and type of the page.

A figure has plots side by side, with one pair of scales. Colours are CSS variables of the page, so
that a figure follows its reader's theme. The same run gives the same text.

          ┌ margin for labels
    80 KB │      ▂▄▆█▆▄            │    ▂▂▂
    40 KB │   ▂▄        ▂▂         │ ▂▄     ▂
          └──────────────────      └──────────────
          0     100     200  us    0     100    200  us
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10
from typing import Any

from markupsafe import Markup, escape

from emu.report.palette import FAINT, GRID, INK, Colour
from emu.report.svg_simplify import Corner, outline, step_line

LETTER, LINE = 5.5, 9.0
"""The approximate width of a letter, and the height of a line, in points."""
_GAP, _PAD, _TITLE, _X_AXIS, _NAME = 16.0, 5.0, 16.0, 28.0, 13.0
"""Points between plots, around them, for titles, for the time axis and for an axis' name."""
_X_TICKS, _POINTS_A_TICK = 6, 30.0

Values = Sequence[float] | Any
"""A sequence or an array of numbers."""


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`. With `labels`, the axis marks only those values."""

    low: float
    high: float
    name: str = ""
    labels: Sequence[tuple[float, str]] | None = None
    is_log: bool = False
    grid: bool = True

    def ticks(self, most: int) -> Sequence[tuple[float, str]]:
        """Round values along the axis with their text, about `most` of them."""
        if self.labels is not None:
            return self.labels
        values = _powers(self.low, self.high) if self.is_log else _round(self.low, self.high, most)
        return [(value, f"{value:,g}") for value in values]

    def share(self, value: float) -> float:
        """The place of a value on the axis: 0 at `low`, 1 at `high`."""
        if self.is_log:
            low, high, value = log10(self.low), log10(self.high), log10(max(value, self.low))
            return (value - low) / (high - low)
        return (value - self.low) / (self.high - self.low)


def _round(low: float, high: float, most: int) -> list[float]:
    least = (high - low) / max(1, most)
    power = 10.0 ** floor(log10(least))
    step = next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= least * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(f"{step * n:.10g}") for n in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    values = (float(f"{n * 10.0**power:.10g}") for power in powers for n in (1, 2, 5))
    return [value for value in values if low <= value <= high]


@dataclass
class Plot:
    """One plot. Its methods take coordinates as values of the axes."""

    left: float
    top: float
    width: float
    height: float
    x: Axis
    y: Axis
    parts: list[str] = field(default_factory=list)

    def at(self, x: float, y: float) -> Corner:
        """The point of the picture for two values. Values beyond an axis move to its end."""
        across, up = (min(1.0, max(0.0, share)) for share in (self.x.share(x), self.y.share(y)))
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def line(
        self, xs: Values, ys: Values, colour: Colour, *, dash: str = "", thick: float = 1.4
    ) -> None:
        self._stroke([self.at(x, y) for x, y in zip(xs, ys, strict=True)], colour, thick, dash)

    def step_line(
        self, edges: Values, heights: Values, colour: Colour, *, thick: float = 1.4
    ) -> None:
        """Draws a step curve with one height from each edge to the next."""
        corners = step_line(list(edges), list(heights))
        self._stroke([self.at(x, y) for x, y in corners], colour, thick, "")

    def band(
        self, edges: Values, low: Values, high: Values, colour: Colour, *, opacity: float = 1.0
    ) -> None:
        """Fills the area between two step curves."""
        upper_edge = step_line(list(edges), list(high))
        lower_edge = step_line(list(edges), list(low))[::-1]
        path = outline(self.at(x, y) for x, y in (*upper_edge, *lower_edge))
        faint = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
        self.parts.append(f'<path d="{path}z" fill="{colour.css}"{faint}/>')

    def ribbon(self, xs: Values, low: Values, high: Values, colour: Colour) -> None:
        """Fills the area between two curves faintly, as for an interval around a line."""
        upper = [self.at(x, y) for x, y in zip(xs, high, strict=True)]
        lower = [self.at(x, y) for x, y in zip(xs, low, strict=True)][::-1]
        path = outline((*upper, *lower))
        self.parts.append(f'<path d="{path}z" fill="{colour.css}" fill-opacity="0.18"/>')

    def dots(self, xs: Values, ys: Values, colour: Colour, *, radius: float = 1.8) -> None:
        for x, y in (self.at(x, y) for x, y in zip(xs, ys, strict=True)):
            self.parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour.css}"/>'
            )

    def crosses(self, xs: Values, y: float, colour: Colour) -> None:
        for cx, cy in (self.at(x, y) for x in xs):
            path = f"M{cx - 3:.1f} {cy - 3:.1f}l6 6m0 -6l-6 6"
            self.parts.append(f'<path d="{path}" fill="none" stroke="{colour.css}"/>')

    def bar(
        self,
        span: tuple[float, float],
        middle: float,
        high: float,
        colour: Colour,
        *,
        filled: bool = True,
    ) -> None:
        """Draws a bar over a span of x, centred on `middle` and `high` tall in values of y."""
        (x1, y1), (x2, y2) = (
            self.at(span[0], middle - high / 2),
            self.at(span[1], middle + high / 2),
        )
        top, tall = min(y1, y2), abs(y1 - y2)
        paint = f'fill="{colour.css}"' if filled else f'fill="none" stroke="{colour.css}"'
        self.parts.append(
            f'<rect x="{x1:.1f}" y="{top:.1f}" width="{max(0, x2 - x1):.1f}" '
            f'height="{tall:.1f}" {paint}/>'
        )

    def text(self, x: float, y: float, text: str, colour: Colour) -> None:
        """Writes text to the right of a point, at its height."""
        left, middle = self.at(x, y)
        self.parts.append(_text(left, middle + LINE / 3, text, colour, "start"))

    def label(self, x: float, y: float, text: str, colour: Colour) -> None:
        """Writes text with its middle at a point."""
        left, middle = self.at(x, y)
        self.parts.append(_text(left, middle + LINE / 3, text, colour, "middle"))

    def _stroke(self, corners: list[Corner], colour: Colour, thick: float, dash: str) -> None:
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<path d="{outline(corners)}" fill="none" stroke="{colour.css}" '
            f'stroke-width="{thick:g}"{dashed}/>'
        )

    # ---- grid, axes and labels -------------------------------------------------

    def drawn(self, title: str, *, with_labels: bool) -> str:
        """The plot as SVG text, with its grid, axes and everything drawn so far."""
        bottom = self.top + self.height
        below = [
            *self._x_ticks(bottom),
            *self._y_ticks(with_labels=with_labels),
            f'<path d="M{self.left:.1f} {bottom:.1f}h{self.width:.1f}" fill="none" '
            f'stroke="{GRID.css}"/>',
        ]
        middle = self.left + self.width / 2
        if self.x.name:
            below.append(_text(middle, bottom + 25, self.x.name, FAINT, "middle"))
        if title:
            below.append(_text(middle, self.top - 6, title, INK, "middle", bold=True))
        return "".join((*below, *self.parts))

    def _x_ticks(self, bottom: float) -> Iterable[str]:
        most = max(2, min(_X_TICKS, int(self.width / 45)))
        for value, label in self.x.ticks(most):
            x = self.at(value, self.y.low)[0]
            if self.x.grid:
                yield _grid(f"M{x:.1f} {self.top:.1f}V{bottom:.1f}")
            yield _text(x, bottom + 12, label, FAINT, "middle")

    def _y_ticks(self, *, with_labels: bool) -> Iterable[str]:
        ink = FAINT if self.y.labels is None else INK
        for value, label in self.y.ticks(max(2, int(self.height / _POINTS_A_TICK))):
            y = self.at(self.x.low, value)[1]
            if self.y.grid:
                yield _grid(f"M{self.left:.1f} {y:.1f}h{self.width:.1f}")
            if with_labels:
                yield _text(self.left - _PAD, y + LINE / 3, label, ink, "end")
        if with_labels and self.y.name:
            middle = self.top + self.height / 2
            yield (
                f'<text transform="translate({_NAME - 4:.1f} {middle:.1f}) rotate(-90)" '
                f'text-anchor="middle" fill="{FAINT.css}">{escape(self.y.name)}</text>'
            )


class Figure:
    """Plots side by side on the same axes, one for each title."""

    def __init__(
        self, titles: Sequence[str], width: float, height: float, x: Axis, y: Axis
    ) -> None:
        self.width, self.height, self._titles = width, height, titles
        top = _TITLE if any(titles) else _PAD + LINE / 2
        tall = height - top - _X_AXIS - (0 if x.name else -12)
        labels = [label for _, label in y.ticks(max(2, int(tall / _POINTS_A_TICK)))]
        left = _PAD * 2 + LETTER * max(map(len, labels), default=0) + (_NAME if y.name else 0)
        wide = (width - left - _PAD * 2 + _GAP) / len(titles) - _GAP
        self.plots = [
            Plot(left + place * (wide + _GAP), top, wide, tall, x, y)
            for place in range(len(titles))
        ]

    def svg(self, label: str) -> Markup:
        """The <svg> element. `label` is its text for screen readers."""
        drawn = "".join(
            plot.drawn(title, with_labels=not place)
            for place, (plot, title) in enumerate(zip(self.plots, self._titles, strict=True))
        )
        return Markup(
            f'<svg role="img" aria-label="{escape(label)}" '
            f'viewBox="0 0 {self.width:g} {self.height:g}" font-size="{LINE:g}">{drawn}</svg>'
        )


def stacked(figures: Sequence[Figure], label: str) -> Markup:
    """One <svg> element with these figures from top to bottom."""
    tops = [sum(figure.height for figure in figures[:place]) for place in range(len(figures))]
    height = sum(figure.height for figure in figures)
    width = max(figure.width for figure in figures)
    drawn = "".join(
        f'<g transform="translate(0 {top:g})">'
        + "".join(plot.drawn("", with_labels=not place) for place, plot in enumerate(figure.plots))
        + "</g>"
        for top, figure in zip(tops, figures, strict=True)
    )
    return Markup(
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width:g} {height:g}" '
        f'font-size="{LINE:g}">{drawn}</svg>'
    )


def _text(x: float, y: float, text: str, colour: Colour, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour.css}"{weight}>'
        f"{escape(text)}</text>"
    )


def _grid(path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="{GRID.css}" stroke-width="0.6"/>'
