"""Varied keys, as Optuna draws them.

    20KB..400KB          a number between the ends; on a logarithmic scale if one is ten times the
                         other, since such keys act by their ratio
    5..500               the same of whole numbers
    dcqcn,swift          one of these

A drawn number is written with three digits: settings are read by people, and two trials that
differ by less are the same to a fabric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from emu.sweeps.units import KeyColumn, as_word, key_column
from emu.sweeps.values import Axis, Span

_LOG_FROM = 10
_DIGITS = 3


@dataclass(frozen=True)
class Parameter:
    """A varied key."""

    key: str
    values: Sequence[Any] | Span
    column: KeyColumn
    why: str
    """The formula of a range that the user left to emu; empty for the user's own."""

    @property
    def text(self) -> str:
        """Its values, as after `--vary KEY=`."""
        if isinstance(self.values, Span):
            return self.values.text
        return ",".join(map(as_word, self.values))

    @property
    def distribution(self) -> BaseDistribution:
        """What Optuna draws from."""
        if not isinstance(self.values, Span):
            return CategoricalDistribution([as_word(value) for value in self.values])
        low, high = self.values.low, self.values.high
        is_log = low > 0 and high / low >= _LOG_FROM
        if type(self.values.write(low)) is int:
            return IntDistribution(round(low), round(high), log=is_log)
        return FloatDistribution(low, high, log=is_log)

    @property
    def is_log(self) -> bool:
        drawn = self.distribution
        return isinstance(drawn, FloatDistribution | IntDistribution) and drawn.log

    def value(self, drawn: Any) -> Any:
        """The key's value for what Optuna drew."""
        if isinstance(self.values, Span):
            span = self.values
            return span.write(min(span.high, max(span.low, float(f"{drawn:.{_DIGITS}g}"))))
        return next(value for value in self.values if as_word(value) == drawn)

    def drawn(self, value: Any) -> Any:
        """What Optuna would have to draw for a value; None if it is not in the range."""
        if not isinstance(self.values, Span):
            return as_word(value) if value in self.values else None
        span = self.values
        try:
            own, low, high = (self.column.cell(each) for each in (value, *_ends(span)))
        except (TypeError, ValueError):  # `auto`, or no value
            return None
        if not self.column.is_number or not isinstance(own, int | float) or not low <= own <= high:
            return None
        number = span.low + (own - low) / (high - low) * (span.high - span.low)
        return round(number) if isinstance(self.distribution, IntDistribution) else number


def parameter(axis: Axis, why: str = "") -> Parameter:
    """The parameter of a key with its values. A range with steps is the list of its values."""
    values = axis.values
    if isinstance(values, Span) and values.steps is not None:
        values = tuple(values.spaced())
    samples = _ends(values) if isinstance(values, Span) else values
    return Parameter(axis.key, values, key_column(axis.key, samples), why)


def _ends(span: Span) -> tuple[Any, Any]:
    return span.write(span.low), span.write(span.high)
