"""Draws curves as short SVG paths, without details too small to see.

A step curve has two corners for each step. Corners are rounded to a tenth of a point, which
is about a tenth of a line's width. Corners that then lie between their neighbours on one line
are removed; peaks stay.

    (68.08, 281.2) (169.27, 281.2) (270.46, 281.2) (270.46, 15.84)   ──▶   M68.1 281.2H270.5V15.8
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Corner = tuple[float, float]


def outline(corners: Iterable[Corner]) -> str:
    """The `d` attribute of a <path> with straight lines from corner to corner."""
    stroke: list[Corner] = []
    for x, y in corners:
        _extend(stroke, (round(float(x), 1), round(float(y), 1)))
    return "".join(_step(*pair) for pair in zip((None, *stroke), stroke, strict=False))


def _extend(stroke: list[Corner], corner: Corner) -> None:
    """Appends a corner, and removes the one before if it lies on the line to the new one."""
    if stroke and corner == stroke[-1]:
        return
    if len(stroke) > 1 and _is_on_the_way(stroke[-2], stroke[-1], corner):
        stroke.pop()
    stroke.append(corner)


def _is_on_the_way(start: Corner, by: Corner, end: Corner) -> bool:
    """Whether `by` lies between the other corners on a horizontal or vertical line."""
    along_x = start[1] == by[1] == end[1] and (by[0] - start[0]) * (end[0] - by[0]) > 0
    along_y = start[0] == by[0] == end[0] and (by[1] - start[1]) * (end[1] - by[1]) > 0
    return along_x or along_y


def _step(start: Corner | None, end: Corner) -> str:
    x, y = end
    if start is None:
        return f"M{x:g} {y:g}"
    if start[1] == y:
        return f"H{x:g}"
    return f"V{y:g}" if start[0] == x else f"L{x:g} {y:g}"


def step_line(edges: Sequence[float], heights: Sequence[float]) -> list[Corner]:
    """The corners of a step curve with one height from each edge to the next."""
    return [
        (x, height)
        for place, height in enumerate(heights)
        for x in (edges[place], edges[place + 1])
    ]
