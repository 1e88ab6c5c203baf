"""A chart as an SVG file of its own, with its legend and its colours, for other pages."""

from __future__ import annotations

import re

from markupsafe import escape

from emu.report.charts.chart import Chart
from emu.report.palette import COLOURS

_MARGIN, _SWATCH, _LINE, _LETTER = 8, 10, 18, 6.2
"""Margin, colour swatch, line height and approximate width of a letter in the legend, in points."""
_SIZE = re.compile(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"')


def standalone_svg(chart: Chart) -> str:
    """The text of an SVG file, with light and dark colours for the reader's theme."""
    size = _SIZE.search(chart.svg)
    assert size is not None, "every picture says its size"
    width, height = float(size[1]), float(size[2])
    top = _LINE + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height + top:g}" '
        f'font-family="sans-serif" font-size="10">'
        f"<title>{escape(chart.title)}</title><style>{_style()}</style>"
        '<rect width="100%" height="100%" fill="var(--page)"/>'
        f"{_legend(chart)}"
        f'<svg y="{top}" width="{width:g}" height="{height:g}"{chart.svg[4:]}'
        "</svg>\n"
    )


def _style() -> str:
    light = "".join(f"--{colour.name}:{colour.light};" for colour in COLOURS)
    dark = "".join(f"--{colour.name}:{colour.dark};" for colour in COLOURS)
    return (
        f":root{{--page:#fff;{light}}}"
        f"@media(prefers-color-scheme:dark){{:root{{--page:#14181f;{dark}}}}}"
    )


def _legend(chart: Chart) -> str:
    drawn, x = [], float(_MARGIN)
    for entry in chart.legend:
        drawn.append(
            f'<rect x="{x:g}" y="{_MARGIN}" width="{_SWATCH}" height="{_SWATCH}" '
            f'fill="{entry.colour.css}"/>'
            f'<text x="{x + _SWATCH + 4:g}" y="{_MARGIN + _SWATCH - 1}" fill="var(--ink)">'
            f"{escape(entry.name)}</text>"
        )
        x += _SWATCH + 16 + _LETTER * len(entry.name)
    return "".join(drawn)
