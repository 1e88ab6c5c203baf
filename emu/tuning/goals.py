"""Goals and constraints: names of figures, and what is wanted of them.

    --minimise fct_slowdown.p99          of all entries of the traffic: the largest of them
    --maximise web.median_goodput_bps    a column as sweeps show it
    --subject-to pause_frames=0          must hold in each run; <=, >= and = with a unit

A name is a column, or a column without its unit and with dots for underscores. A name without the
entry of the traffic means this figure of all entries: the worst of them counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from emu.errors import UsageError
from emu.report.run_figures import unit_of, written
from emu.spec.diagnostic import unknown_name
from emu.units import PS_PER_NS, parse_rate, parse_size, parse_time
from emu.words import listed

_BOUND = re.compile(r"\s*([A-Za-z0-9_.-]+?)\s*(<=|>=|=)\s*(\S.*?)\s*")


@dataclass(frozen=True)
class Figure:
    """A figure of a run by its name: a column, or the same figure of several entries."""

    name: str
    columns: tuple[str, ...]

    @property
    def unit(self) -> str:
        return unit_of(self.columns[0])

    def values(self, row: Mapping[str, Any]) -> list[float] | None:
        """The values in a run's row; None if one is missing, as of a flow that did not finish."""
        found = [row.get(column) for column in self.columns]
        known = [float(value) for value in found if value is not None]
        return known if len(known) == len(found) else None


@dataclass(frozen=True)
class Goal:
    """A figure that is to be small, or large."""

    figure: Figure
    maximise: bool

    @property
    def name(self) -> str:
        return self.figure.name

    @property
    def words(self) -> str:
        """`minimise fct_slowdown.p99`."""
        return f"{'maximise' if self.maximise else 'minimise'} {self.name}"

    def value(self, row: Mapping[str, Any]) -> float | None:
        """The worst of the figure's entries in a run; None if it has none."""
        values = self.figure.values(row)
        return None if values is None else (min(values) if self.maximise else max(values))

    @property
    def worst(self) -> float:
        """What a run counts that has no such figure."""
        return -inf if self.maximise else inf

    def gain(self, own: float, other: float) -> float:
        """By how much `own` is better than `other`, in the figure's unit; negative if worse."""
        return own - other if self.maximise else other - own


@dataclass(frozen=True)
class Constraint:
    """What must hold in each run."""

    figure: Figure
    sign: str
    """`<=`, `>=` or `=`."""
    limit: float

    @property
    def words(self) -> str:
        """`pause_frames = 0`."""
        return f"{self.figure.name} {self.sign} {written(self.limit, self.figure.unit)}"

    def excess(self, row: Mapping[str, Any]) -> float:
        """By how much a run violates it: 0 if it holds, infinite if the run has no such figure."""
        values = self.figure.values(row)
        if values is None:
            return inf
        return max(_EXCESS[self.sign](value, self.limit) for value in values)


_EXCESS: Mapping[str, Callable[[float, float], float]] = {
    "<=": lambda value, limit: max(0.0, value - limit),
    ">=": lambda value, limit: max(0.0, limit - value),
    "=": lambda value, limit: abs(value - limit),
}


@dataclass(frozen=True)
class Wish:
    """A goal before the figures of the spec are known."""

    name: str
    maximise: bool
    option: str

    def among(self, known: Sequence[str]) -> Goal:
        """The goal. Raises UsageError for a name that is no figure of the runs."""
        return Goal(figure_of(self.name, known, self.option), self.maximise)


@dataclass(frozen=True)
class Bound:
    """A constraint before the figures of the spec are known."""

    name: str
    sign: str
    limit: str
    option: str

    def among(self, known: Sequence[str]) -> Constraint:
        """The constraint. Raises UsageError for an unknown figure or a limit in another unit."""
        figure = figure_of(self.name, known, self.option)
        return Constraint(figure, self.sign, self._number(figure.unit))

    def _number(self, unit: str) -> float:
        read, example = _LIMITS.get(unit, (float, "0"))
        try:
            return read(self.limit)
        except ValueError:
            raise UsageError(
                f"{self.option} {self.name}: {self.limit!r} is no limit for it; write it like "
                f"{self.name}{self.sign}{example}"
            ) from None


_LIMITS: Mapping[str, tuple[Callable[[str], float], str]] = {
    "ns": (lambda text: parse_time(text) / PS_PER_NS, "2ms"),
    "bps": (parse_rate, "40Gbit"),
    "bytes": (parse_size, "500KB"),
}


def bound_of(text: str, option: str) -> Bound:
    """The constraint in `pause_frames=0`. Raises UsageError."""
    match = _BOUND.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{option} {text}: is no constraint; write it like pause_frames=0 or "
            "'deepest_queue_bytes<=500KB'"
        )
    return Bound(match[1], match[2], match[3], option)


def figure_of(name: str, known: Sequence[str], option: str) -> Figure:
    """The figure of this name among the columns of a run. Raises UsageError."""
    whole = [column for column in known if name == column] or [
        column for column in known if _plain(column) == _plain(name)
    ]
    if whole:
        return Figure(name, (whole[0],))
    alike: dict[str, list[str]] = {}
    for column in known:
        _, dot, figure = column.partition(".")
        if dot and _ends(_plain(figure), _plain(name)):
            alike.setdefault(figure, []).append(column)
    if len(alike) == 1:
        return Figure(name, tuple(next(iter(alike.values()))))
    if alike:
        raise UsageError(f"{option} {name}: may be {listed(list(alike))}; name one of them")
    raise UsageError(f"{option}: {unknown_name('figure', name, list(known))}")


def _plain(column: str) -> str:
    """A name without its unit, with underscores alone."""
    unit = unit_of(column)
    return column.removesuffix(f"_{unit}" if unit else "").replace(".", "_")


def _ends(column: str, name: str) -> bool:
    return column == name or column.endswith(f"_{name}")


def resolved(
    wishes: Iterable[Wish], bounds: Iterable[Bound], known: Sequence[str]
) -> tuple[list[Goal], list[Constraint]]:
    """All goals and constraints. Raises UsageError with all mistakes."""
    found: list[Goal | Constraint] = []
    mistakes = []
    everything: list[Wish | Bound] = [*wishes, *bounds]
    for wanted in everything:
        try:
            found.append(wanted.among(known))
        except UsageError as mistake:
            mistakes.append(str(mistake))
    if mistakes:
        raise UsageError("\n".join(mistakes))
    goals = [own for own in found if isinstance(own, Goal)]
    return goals, [own for own in found if isinstance(own, Constraint)]
