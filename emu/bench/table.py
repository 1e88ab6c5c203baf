"""Writes the benchmark's rows as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu.bench.history import Compared
from emu.bench.row import Row, Target

SCHEMA = "emu.bench/1"
_HEADER = ("figure", "measured", "baseline", "ratio", "last", "median", "to reach", "")


def table(rows: Sequence[Compared]) -> str:
    """The table for the terminal, about 140 columns wide."""
    cells = [_HEADER, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_line(line, widths) for line in cells)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """A line of the table. Numbers are aligned to the right."""
    name, *numbers, note = cells
    right = (cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True))
    return "  ".join((name.ljust(widths[0]), *right, note)).rstrip()


def _cells(compared: Compared) -> tuple[str, ...]:
    row = compared.row
    return (
        row.figure,
        _number(row.measured, row.unit),
        _number(row.baseline, row.unit),
        "" if row.ratio is None else f"{row.ratio:.2f}",
        _earlier(row, compared.last),
        _earlier(row, compared.median),
        _bound(row),
        row.note or _judgement(compared),
    )


def _judgement(compared: Compared) -> str:
    reached = {True: "reached", False: "SHORT", None: ""}[compared.row.reached]
    return f"{reached} WORSE than before".strip() if compared.is_worse else reached


def _earlier(row: Row, value: float | None) -> str:
    """The text of a value from earlier runs: a ratio if there is a baseline, else the figure."""
    if value is None:
        return ""
    return _number(value, row.unit) if row.baseline is None else f"{value:.2f}"


def _bound(row: Row) -> str:
    if row.target is None:
        return ""
    sign = "<=" if row.target.at_most else ">="
    bound = f"{row.target.bound:.2f}" if row.baseline else _number(row.target.bound, row.unit)
    return f"{sign} {bound}"


def _number(value: float | None, unit: str) -> str:
    """A number with at least three significant digits and separated thousands."""
    if value is None:
        return ""
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def document(machine: Mapping[str, Any], rows: Sequence[Row], *, quick: bool) -> dict[str, Any]:
    """The document of the JSON file."""
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
