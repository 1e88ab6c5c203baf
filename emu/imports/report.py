"""The report of an import: what became of each row of the files.

taken           the spec says the same, and an export gives the row back
approximated    the spec says something else, and the report says what
ignored         the spec says nothing of it, and the report says why
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from emu.words import listed, shortened

_MOST_FILES = 8
_MOST_PORTS = 4
_MOST_KEYS = 4
"""Keys that a line of the short form names."""


class Outcome(Enum):
    """What became of a row. Of several outcomes of one row, the first of these counts."""

    APPROXIMATED = "approximated"
    TAKEN = "taken"
    IGNORED = "ignored"


_RANK = {outcome: rank for rank, outcome in enumerate(Outcome)}
_SHOWN = (Outcome.TAKEN, Outcome.APPROXIMATED, Outcome.IGNORED)


class Row(NamedTuple):
    """A place in a file: `leaf1.json: PORT|Ethernet0|speed`. The field is empty for a whole row."""

    file: str
    table: str
    key: str = ""
    field: str = ""

    @property
    def path(self) -> str:
        return "|".join(part for part in self[1:] if part)

    def __str__(self) -> str:
        return f"{self.file}: {self.path}"


@dataclass(frozen=True)
class Line:
    """One row with its outcome and what it became, or why not."""

    row: Row
    outcome: Outcome
    text: str

    def __str__(self) -> str:
        return f"{self.row}: {self.outcome.value}: {self.text}"


class Report:
    """Collects the outcomes of rows. A row may be noted several times."""

    def __init__(self) -> None:
        self._noted: dict[Row, tuple[Outcome, dict[str, None]]] = {}

    def taken(self, row: Row, text: str) -> None:
        self._note(row, Outcome.TAKEN, text)

    def approximated(self, row: Row, text: str) -> None:
        self._note(row, Outcome.APPROXIMATED, text)

    def ignored(self, row: Row, text: str) -> None:
        self._note(row, Outcome.IGNORED, text)

    def outcome(self, row: Row) -> Outcome | None:
        """The outcome so far; None: nothing is noted."""
        noted = self._noted.get(row)
        return None if noted is None else noted[0]

    @property
    def lines(self) -> list[Line]:
        """All rows, by file, in the order in which they were noted first."""
        lines = [
            Line(row, outcome, "; ".join(texts)) for row, (outcome, texts) in self._noted.items()
        ]
        return sorted(lines, key=lambda line: line.row.file)

    def short(self) -> Iterator[str]:
        """The report for people: rows with the same text share a line, and files with the same
        rows do."""
        by_file: dict[str, list[Line]] = {}
        for line in self.lines:
            by_file.setdefault(line.row.file, []).append(line)
        for file, lines in by_file.items():
            yield f"{file}: {_counts(lines)}"
        for files, lines in _alike(by_file).items():
            if len(by_file) > 1:
                yield f"{listed(files, _MOST_FILES)}:"
            for outcome in _SHOWN:
                yield from _grouped([line for line in lines if line.outcome is outcome])

    def _note(self, row: Row, outcome: Outcome, text: str) -> None:
        before, texts = self._noted.get(row, (outcome, {}))
        if _RANK[outcome] > _RANK[before]:
            return
        if before is not outcome:
            texts = {}
        self._noted[row] = outcome, {**texts, text: None}


def _alike(by_file: Mapping[str, list[Line]]) -> dict[tuple[str, ...], list[Line]]:
    """The files that have the same row with the same outcome -> these rows, once."""
    found: dict[Line, list[str]] = {}
    for file, lines in by_file.items():
        for line in lines:
            anywhere = Line(line.row._replace(file=""), line.outcome, line.text)
            found.setdefault(anywhere, []).append(file)
    alike: dict[tuple[str, ...], list[Line]] = {}
    for line, files in found.items():
        alike.setdefault(tuple(files), []).append(line)
    return alike


def _counts(lines: Iterable[Line]) -> str:
    counts = Counter(line.outcome for line in lines)
    return listed([f"{counts[outcome]:,} {outcome.value}" for outcome in _SHOWN])


def _grouped(lines: Iterable[Line]) -> Iterator[str]:
    groups: dict[tuple[str, str, Outcome], dict[str, list[str]]] = {}
    for line in lines:
        keys = groups.setdefault((line.row.table, line.text, line.outcome), {})
        keys.setdefault(line.row.key, []).append(line.row.field)
    for (table, text, outcome), keys in groups.items():
        yield f"  {outcome.value:<12}  {table}{_rows(keys)}: {text}"


def _rows(keys: Mapping[str, list[str]]) -> str:
    """`|AZURE|0-63` or `|Ethernet0, Ethernet4|speed`."""
    by_fields: dict[str, list[str]] = {}
    for key, fields in keys.items():
        by_fields.setdefault(ranges(fields), []).append(key)
    parts = []
    for fields_text, own in by_fields.items():
        words = (shortened([_brief(key) for key in own], _MOST_KEYS), fields_text)
        parts.append("|".join(word for word in words if word))
    text = "; ".join(parts)
    return f"|{text}" if text else ""


def _brief(key: str) -> str:
    """A key with the first and the last of many ports: `Ethernet0,...,Ethernet124|3-4`."""
    first, *middle, last = (*key.split(","), "")
    return key if len(middle) < _MOST_PORTS else f"{first},...,{middle[-1]}{last}"


def ranges(words: Iterable[str]) -> str:
    """`0-2, 5, name`: consecutive numbers as ranges, other words as they are."""
    spans: list[list[str]] = []
    for word in words:
        last = spans[-1][-1] if spans else ""
        if word.isdecimal() and last.isdecimal() and int(word) == int(last) + 1:
            spans[-1] = [spans[-1][0], word]
        else:
            spans.append([word])
    return ", ".join("-".join(span) for span in spans)
