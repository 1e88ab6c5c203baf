"""A table as plain data, the same for the terminal and the page.

A dash means that a fabric has no such thing. A question mark stands where the
machine did not keep up with a run: its numbers are no results and are not shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from emu.measure.recording import FlowRecord
from emu.report.run_view import RunFacts
from emu.units import format_time_ns


class Tone(StrEnum):
    """What a cell tells beside its text."""

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
    """Numbers are set flush right."""


@dataclass(frozen=True)
class Table:
    """`rows` are as long as `columns`; `note` is a sentence to set below."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


NOT_APPLICABLE = Cell("-", Tone.FAINT)
NOT_A_RESULT = Cell("?", Tone.FAINT)
UNFINISHED = Cell("unfinished", Tone.BAD)


def result(run: RunFacts, text: str, tone: Tone = Tone.PLAIN) -> Cell:
    """The text, if it is a result of an honest run."""
    return Cell(text, tone) if run.conclusive else NOT_A_RESULT


def of_finished(run: RunFacts, value: float | None, write: Callable[[float], str]) -> Cell:
    """A statistic of what was over; None: nothing was."""
    return NOT_APPLICABLE if value is None else result(run, write(value))


def took(run: RunFacts, flow: FlowRecord) -> Cell:
    """How long a flow took."""
    if flow.end_ns is None or not flow.completed:
        return UNFINISHED
    return result(run, format_time_ns(flow.end_ns - flow.start_ns))
