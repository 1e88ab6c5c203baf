"""The result of a figure of the benchmark: a row of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Target:
    """The goal of a figure: a bound of its ratio to the baseline, or of its value without one."""

    bound: float
    at_most: bool = False

    def met_by(self, value: float) -> bool:
        return value <= self.bound if self.at_most else value >= self.bound


_BETTER_LOW = ("s", "MB", "times")
"""Units of figures for which lower is better."""


@dataclass(frozen=True)
class Row:
    """One figure. If it could not be measured, `measured` is None and `note` has the reason."""

    figure: str
    unit: str
    measured: float | None = None
    baseline: float | None = None
    target: Target | None = None
    note: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    """The single measurements behind the figure, for the JSON file."""

    @property
    def ratio(self) -> float | None:
        """The ratio to the baseline; None without a baseline or a value."""
        if self.measured is None or not self.baseline:
            return None
        return self.measured / self.baseline

    @property
    def is_better_low(self) -> bool:
        """Whether lower is better, as for times and memory."""
        return self.target.at_most if self.target else self.unit in _BETTER_LOW

    @property
    def compared(self) -> float | None:
        """The value by which runs are compared: the ratio to the baseline, or the figure without
        one."""
        return self.measured if self.baseline is None else self.ratio

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None without a target or a value."""
        if self.target is None or self.compared is None:
            return None
        return self.target.met_by(self.compared)


def side_by_side(
    figure: str,
    unit: str,
    measured: Sequence[float],
    baseline: Sequence[float],
    target: Target | None,
    **details: Any,
) -> Row:
    """A row of medians, from measurements taken in turn."""
    return Row(
        figure,
        unit,
        median(measured),
        median(baseline),
        target,
        details={"measured": list(measured), "baseline": list(baseline), **details},
    )
