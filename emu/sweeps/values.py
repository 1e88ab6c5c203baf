"""The values of a varied key, as after `--vary KEY=`.

    20KB,50KB,100KB      a list; commas inside of brackets belong to a value
    20KB..400KB/5        five values, evenly spaced, with both ends
    20KB..400KB          any value in between, for random points

Values are YAML, as after `--set`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor
from typing import Any

from emu.errors import UsageError
from emu.spec.document import Unreadable
from emu.spec.settings import value_of
from emu.units import (
    parse_length,
    parse_rate,
    parse_size,
    parse_time,
    write_length,
    write_rate,
    write_size,
    write_time,
)

_NUMBER = r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_SPAN = re.compile(
    rf"\s*({_NUMBER})\s*([A-Za-zµ%/]*)\s*\.\.\s*({_NUMBER})\s*([A-Za-zµ%/]*)\s*(?:/\s*([0-9]+))?\s*"
)
_QUANTITIES: tuple[tuple[Callable[[str], int], Callable[[int], str]], ...] = (
    (parse_time, write_time),
    (parse_size, write_size),
    (parse_length, write_length),
    (parse_rate, write_rate),
)
"""Readers and writers of quantities whose ends may have different units: 500ns..2us."""
MOST_STEPS = 100_000

_EXAMPLE = "switches.ecn.kmin=20KB,50KB,100KB"


@dataclass(frozen=True)
class Span:
    """All values from one to another. `text` is how it was written."""

    text: str
    low: float
    high: float
    write: Callable[[float], Any]
    steps: int | None
    """None: it has no steps."""

    def at(self, share: float) -> Any:
        """The value at this share of the way from `low` (0) to `high` (1)."""
        return self.write(self.low + share * (self.high - self.low))

    def spaced(self) -> list[Any]:
        """As many values as it has steps, evenly spaced. Raises UsageError if it has none."""
        if self.steps is None:
            raise UsageError(
                f"{self.text}: says no number of values; write {self.text}/5 for five of them, or "
                "take random points (--random)"
            )
        last = max(1, self.steps - 1)
        return list(dict.fromkeys(self.at(step / last) for step in range(self.steps)))


@dataclass(frozen=True)
class Axis:
    """A key with its values."""

    key: str
    values: Sequence[Any] | Span

    def listed(self) -> list[Any]:
        """The values of a grid. Raises UsageError for a span without steps."""
        return self.values.spaced() if isinstance(self.values, Span) else list(self.values)

    def at(self, share: float) -> Any:
        """The value at this share from 0 to 1 (less than 1 for a list)."""
        if isinstance(self.values, Span):
            return self.values.at(share)
        return self.values[int(share * len(self.values))]


def axis_of(text: str, option: str = "--vary", example: str = _EXAMPLE) -> Axis:
    """The axis of `KEY=VALUES`. Raises UsageError."""
    key, equals, values = text.partition("=")
    if not equals or not key:
        raise UsageError(
            f"{option} {text}: is no key with values; write it like {option} {example}"
        )
    return Axis(key, values_of(values, f"{option} {key}"))


def values_of(text: str, option: str) -> Sequence[Any] | Span:
    """The values in a text. `option` is its name in errors. Raises UsageError."""
    span = _SPAN.fullmatch(text)
    if span is not None:
        return _span(text.strip(), span, option)
    return tuple(plain_value(part, option) for part in _split(text))


def scaled(value: Any, factor: float) -> Any:
    """A number or a quantity times a factor, written like the value: 20KB becomes 40KB, and whole
    numbers stay whole. Raises ValueError for a word."""
    if type(value) is int:
        return floor(value * factor + 0.5)
    if isinstance(value, float):
        return value * factor
    for parse, write in _QUANTITIES:
        try:
            return write(round(parse(str(value)) * factor))
        except ValueError:
            continue
    raise ValueError(f"{value!r} is no quantity")


def plain_value(text: str, option: str) -> Any:
    """One value, which is YAML. Raises UsageError."""
    try:
        return value_of(text, option)
    except Unreadable as error:
        raise UsageError(f"{option}: {error}") from None


def _split(text: str) -> list[str]:
    """The parts between commas that are in no bracket and no quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "[{") - (letter in "]}")
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _span(text: str, match: re.Match[str], option: str) -> Span:
    low_text, low_unit, high_text, high_unit, steps_text = match.groups()
    steps = None if steps_text is None else int(steps_text)
    if steps is not None and not 2 <= steps <= MOST_STEPS:
        raise UsageError(
            f"{option}: {text}: /{steps} is no number of values from 2 to {MOST_STEPS}"
        )
    if low_unit == high_unit:
        whole = _is_whole(low_text) and _is_whole(high_text)
        span = Span(text, float(low_text), float(high_text), _writer(low_unit, whole), steps)
    else:
        span = _of_quantities(text, low_text + low_unit, high_text + high_unit, steps, option)
    if span.low >= span.high:
        raise UsageError(f"{option}: {text}: its first value must be below its last")
    return span


def _is_whole(text: str) -> bool:
    return re.fullmatch("-?[0-9]+", text) is not None


def _writer(unit: str, whole: bool) -> Callable[[float], Any]:
    """How values of one unit are written. Plain whole numbers stay whole."""
    if unit:
        return lambda value: f"{value:.6g}{unit}"
    return round if whole else lambda value: float(f"{value:.6g}")


def _of_quantities(text: str, low: str, high: str, steps: int | None, option: str) -> Span:
    for parse, write in _QUANTITIES:
        try:
            ends = parse(low), parse(high)
        except ValueError:
            continue
        return Span(text, *ends, partial(_rounded, write), steps)
    raise UsageError(
        f"{option}: {text}: {low} and {high} are no quantities of one kind; write it like "
        "20KB..400KB"
    )


def _rounded(write: Callable[[int], str], value: float) -> str:
    return write(round(value))
