"""A table as plain data, the same for the terminal and the page.

A dash means that a fabric has no such thing. A question mark replaces the numbers of
an inconclusive run, because they are not results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from emu.measure.records import FlowRecord
from emu.report.run_view import RunFacts
from emu.units import format_time_ns


class Tone(StrEnum):
    """The emphasis of a cell."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    FAINT = "faint"


@dataclass(frozen=True)
class Cell:
    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Column:
    name: str
    numeric: bool = True
    """Numeric columns are aligned to the right."""


@dataclass(frozen=True)
class Table:
    """A table. Rows are as long as `columns`; `note` is a sentence below the table."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


NOT_APPLICABLE = Cell("-", Tone.FAINT)
NOT_KNOWN = Cell("not known", Tone.FAINT)
"""Of a model without packets."""
NOT_A_RESULT = Cell("?", Tone.FAINT)
UNFINISHED = Cell("unfinished", Tone.BAD)


def result(run: RunFacts, text: str, tone: Tone = Tone.PLAIN) -> Cell:
    """The text, or a question mark if the run is inconclusive."""
    return Cell(text, tone) if run.conclusive else NOT_A_RESULT


def of_finished(run: RunFacts, value: float | None, write: Callable[[float], str]) -> Cell:
    """A statistic of what has finished; a dash if nothing has (None)."""
    return NOT_APPLICABLE if value is None else result(run, write(value))


def duration_cell(run: RunFacts, flow: FlowRecord) -> Cell:
    """How long a flow took."""
    if flow.end_ns is None or not flow.completed:
        return UNFINISHED
    return result(run, format_time_ns(flow.end_ns - flow.start_ns))
