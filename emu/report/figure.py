"""A matplotlib figure as a piece of a page: inline SVG in the page's own colours and type.

Deterministic: no date, no random ids, so that the same run gives the same page.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from emu.report.outline import thin_outlines
from emu.report.palette import FAINT, GRID, INK, themed

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "emu",
    "text.parse_math": False,
    "font.size": 9,
    "font.sans-serif": ["DejaVu Sans"],
    "text.color": INK.light,
    "axes.labelcolor": FAINT.light,
    "axes.titlecolor": INK.light,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.edgecolor": GRID.light,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID.light,
    "grid.linewidth": 0.6,
    "xtick.color": GRID.light,
    "ytick.color": GRID.light,
    "xtick.labelcolor": FAINT.light,
    "ytick.labelcolor": FAINT.light,
    "figure.facecolor": "none",
    "lines.linewidth": 1.4,
    "lines.solid_joinstyle": "round",
}

_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_NOT_FOR_PAGES = (
    re.compile(r"<metadata>.*?</metadata>", re.DOTALL),
    re.compile(r'<style type="text/css">.*?</style>', re.DOTALL),
    re.compile(r'(?<=<g) id="[^"]*"'),
    re.compile(r' xmlns(:xlink)?="[^"]*"'),
    re.compile(r'(?<=<svg) width="[^"]*"| height="[^"]*pt"'),
)
"""Parts of a stand-alone SVG that a page must not have twice, or not at all."""


def inline_svg(figure: Figure, label: str) -> Markup:
    """The figure as an <svg> element; `label` is what a screen reader says."""
    file = StringIO()
    figure.savefig(file, format="svg", metadata=_NO_METADATA)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    for pattern in _NOT_FOR_PAGES:
        svg = pattern.sub("", svg)
    svg = thin_outlines(themed(svg.replace("xlink:href", "href")))
    return Markup(svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1))


def in_style() -> Any:
    """The context in which figures are made and written."""
    return mpl.rc_context(_STYLE)
