"""The benchmark's rows, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu.bench.row import Row, Target

SCHEMA = "emu.bench/1"
_HEADER = ("figure", "measured", "baseline", "ratio", "to reach", "")


def table(rows: Sequence[Row]) -> str:
    """For the terminal, about 120 columns. A figure that could not be measured says why."""
    cells = [_HEADER, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_line(line, widths) for line in cells)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Numbers flush right, between the figure's name and the note."""
    name, *numbers, note = cells
    right = (cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True))
    return "  ".join((name.ljust(widths[0]), *right, note)).rstrip()


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.figure,
        _number(row.measured, row.unit),
        _number(row.baseline, row.unit),
        "" if row.ratio is None else f"{row.ratio:.2f}",
        _bound(row),
        row.note or {True: "reached", False: "SHORT", None: ""}[row.reached],
    )


def _bound(row: Row) -> str:
    if row.target is None:
        return ""
    sign = "<=" if row.target.at_most else ">="
    bound = f"{row.target.bound:.2f}" if row.baseline else _number(row.target.bound, row.unit)
    return f"{sign} {bound}"


def _number(value: float | None, unit: str) -> str:
    """Three digits or more, thousands apart."""
    if value is None:
        return ""
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def document(machine: Mapping[str, Any], rows: Sequence[Row], *, quick: bool) -> dict[str, Any]:
    """For the JSON file."""
    return {
        "schema": SCHEMA,
        "machine": dict(machine),
        "quick": quick,
        "figures": [_fields(row) for row in rows],
    }


def _fields(row: Row) -> dict[str, Any]:
    return {
        "figure": row.figure,
        "unit": row.unit,
        "measured": row.measured,
        "baseline": row.baseline,
        "ratio": row.ratio,
        "to_reach": _target(row.target),
        "reached": row.reached,
        "note": row.note,
        "details": dict(row.details),
    }


def _target(target: Target | None) -> dict[str, float] | None:
    if target is None:
        return None
    return {"at_most" if target.at_most else "at_least": target.bound}
