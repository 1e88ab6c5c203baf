"""Simplified outlines for SVG: fewer corners with the same look."""

from __future__ import annotations

import re

import numpy as np
import pytest

from emu.report.svg_simplify import Corner, outline, step_line

STEPS = 300


@pytest.mark.parametrize(
    ("corners", "thinned"),
    [
        ([(0, 0), (4.04, 0.01), (9, 0), (9, 5)], "M0 0H9V5"),
        ([(5, 5), (6, 7), (6, 7.01)], "M5 5L6 7"),
        ([(0, 9), (3, 9), (3, 1), (3, 9), (6, 9)], "M0 9H3V1V9H6"),
        ([], ""),
    ],
    ids=["passed by", "aslant", "a peak", "nothing"],
)
def test_collinear_corners_are_removed(corners: list[Corner], thinned: str) -> None:
    """Corners where the line turns back are peaks and stay."""
    assert outline(corners) == thinned


def test_a_curve_keeps_its_peaks_to_a_tenth_of_a_point() -> None:
    """Every height stays, and a flat stretch is one segment."""
    heights = np.random.default_rng(7).integers(0, 40, STEPS).repeat(2)
    drawn = outline(step_line(range(2 * STEPS + 1), heights.tolist()))
    tall = {float(y) for y in re.findall(r"V([\d.]+)|M\S+ ([\d.]+)", drawn) for y in y if y}
    assert tall == set(heights.tolist())
    assert drawn.count("H") <= STEPS
