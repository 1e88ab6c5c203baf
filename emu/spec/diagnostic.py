"""Diagnostics: errors in a spec, the keys that they are about, and places in the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

KeyPath = tuple[str | int, ...]
"""A key in a spec: `("traffic", 0, "size")`, written `traffic.0.size`."""


@dataclass(frozen=True, order=True)
class Place:
    """A place in the input: line and column of a file, or a setting like `--set seed`."""

    line: int
    column: int
    source: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True)
class Diagnostic:
    """One error in the key at `path`, and what to do about it.

    `about` holds the other keys that the error depends on or makes doubtful. An error that depends
    on a doubtful key is not reported: if the number of hosts is invalid, an unknown host is no
    separate error.
    """

    path: KeyPath
    text: str
    about: tuple[KeyPath, ...] = ()
    place: Place | None = None
    """The place of the error, if it differs from the place of `path`."""
    idle_if_inherited: bool = False
    """Whether a variant may inherit the key from its base although the key has no effect there."""


class Places:
    """The place of each key of a spec. A key that is not in the text has its parent's place."""

    def __init__(self, start: Place) -> None:
        self._places: dict[KeyPath, Place] = {(): start}

    def __getitem__(self, path: KeyPath) -> Place:
        while path not in self._places:
            path = path[:-1]
        return self._places[path]

    def add(self, path: KeyPath, place: Place) -> None:
        """Records the place of `path`."""
        self._places[path] = place

    def replace(self, path: KeyPath, place: Place) -> None:
        """Records a new place of `path` and of all keys below it."""
        for below in [known for known in self._places if known[: len(path)] == path]:
            del self._places[below]
        self._places[path] = place


def lines(findings: Iterable[Diagnostic], places: Places) -> list[str]:
    """A line for each finding, in the order of the text: `file:line:col: path: error`."""
    placed = {(finding.place or places[finding.path], _line(finding)) for finding in findings}
    return [f"{place}: {line}" for place, line in sorted(placed, key=lambda p: (p[0], p[1]))]


def _line(finding: Diagnostic) -> str:
    return f"{dotted(finding.path)}: {finding.text}" if finding.path else finding.text


def dotted(path: KeyPath) -> str:
    return ".".join(map(str, path))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most similar, if any is similar enough."""
    return next(iter(get_close_matches(word, list(known), n=1)), None)


def unknown_name(what: str, name: str, known: list[str]) -> str:
    """`there is no host 'h9'; there is h1 to h8`."""
    hint = did_you_mean(name, known)
    if not hint and known:
        names = ", ".join(known) if len(known) <= 8 else f"{known[0]} to {known[-1]}"
        hint = f"; there is {names}"
    return f"there is no {what} {name!r}{hint}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'spines'?)`, or an empty text when no known word is similar."""
    near = nearest(word, known)
    return f" (did you mean {near!r}?)" if near else ""
