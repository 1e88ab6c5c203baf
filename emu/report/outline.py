"""SVG outlines without what no eye can see.

A curve of steps has two corners for each step, and matplotlib writes each in full, on a line
of its own. Here corners are rounded to a tenth of a point, a tenth of what a line is wide;
those that then lie on the way between their neighbours are gone, and peaks stay.

    M 68.078521 281.199057          M68.1 281.2H270.5V15.8
    L 169.270000 281.199057   ──▶
    L 270.461127 281.199057
    L 270.461127 15.838834
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Corner = tuple[float, float]

_OUTLINE = re.compile(r'(?<= d=")[MLz\d\s.-]+(?=")')
"""Straight ones; a curve has other commands, and stays as it is."""
_COMMAND = re.compile(r"([MLz])(?:\s+([\d.-]+)\s+([\d.-]+))?")


def thin_outlines(svg: str) -> str:
    """The text of an SVG with all its outlines thinned out."""
    return _OUTLINE.sub(lambda outline: "".join(_thinned(outline[0])), svg)


def _thinned(outline: str) -> Iterator[str]:
    stroke: list[Corner] = []
    for command, x, y in _COMMAND.findall(outline):
        if command != "L":
            yield _written(stroke)
            stroke = []
        if command == "z":
            yield "z"
        else:
            _extend(stroke, (round(float(x), 1), round(float(y), 1)))
    yield _written(stroke)


def _extend(stroke: list[Corner], corner: Corner) -> None:
    """Its last corner goes where it is only passed by."""
    if stroke and corner == stroke[-1]:
        return
    if len(stroke) > 1 and _is_on_the_way(stroke[-2], stroke[-1], corner):
        stroke.pop()
    stroke.append(corner)


def _is_on_the_way(start: Corner, by: Corner, end: Corner) -> bool:
    """Along an axis; there and back is not."""
    along_x = start[1] == by[1] == end[1] and (by[0] - start[0]) * (end[0] - by[0]) > 0
    along_y = start[0] == by[0] == end[0] and (by[1] - start[1]) * (end[1] - by[1]) > 0
    return along_x or along_y


def _written(stroke: Sequence[Corner]) -> str:
    return "".join(_step(*corners) for corners in zip((None, *stroke), stroke, strict=False))


def _step(start: Corner | None, end: Corner) -> str:
    x, y = end
    if start is None:
        return f"M{x:g} {y:g}"
    if start[1] == y:
        return f"H{x:g}"
    return f"V{y:g}" if start[0] == x else f"L{x:g} {y:g}"
