"""Outlines of pictures: fewer corners, and to the eye the same."""

from __future__ import annotations

import re
from io import StringIO

import numpy as np
import pytest
from matplotlib.figure import Figure

from emu.report.outline import thin_outlines

STEPS = 300


def outline(path: str) -> str:
    return f'<path d="{path}" style="fill: none"/>'


@pytest.mark.parametrize(
    ("drawn", "thinned"),
    [
        ("M 0 0 \nL 4.04 0.01 \nL 9 0 \nL 9 5 \n", "M0 0H9V5"),
        ("M 1 1 \nL 2 1 \nL 2 2 \nz\nM 5 5 \nL 6 7 \n", "M1 1H2V2zM5 5L6 7"),
        ("M 0 9 \nL 3 9 \nL 3 1 \nL 3 9 \nL 6 9 \n", "M0 9H3V1V9H6"),
        ("M 0 0 \nC 1 1 2 2 3 0 \n", "M 0 0 \nC 1 1 2 2 3 0 \n"),
    ],
    ids=["passed by", "two strokes", "a peak", "a curve"],
)
def test_corners_on_the_way_are_gone(drawn: str, thinned: str) -> None:
    """But not where the way turns back: that is a peak."""
    assert thin_outlines(outline(drawn)) == outline(thinned)


def test_a_drawn_curve_keeps_its_peaks_to_a_tenth_of_a_point() -> None:
    """Every height that matplotlib drew is there, in a quarter of the text."""
    heights = np.random.default_rng(7).integers(0, 40, STEPS).repeat(2)
    figure = Figure()
    figure.subplots().stairs(heights, baseline=None)
    file = StringIO()
    figure.savefig(file, format="svg")
    drawn, thinned = (curve_of(text) for text in (file.getvalue(), thin_outlines(file.getvalue())))
    tall = {round(float(y), 1) for y in re.findall(r"[ML] \S+ (\S+)", drawn)}
    assert {
        float(y) for y in re.findall(r"V([\d.]+)|M\S+ ([\d.]+)", thinned) for y in y if y
    } == tall
    assert 4 * len(thinned) < len(drawn)


def curve_of(svg: str) -> str:
    """The longest outline."""
    outlines: list[str] = re.findall(r' d="([^"]*)"', svg)
    return max(outlines, key=len)
