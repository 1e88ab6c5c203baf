"""What a change costs: differences from the fabric without it, seed by seed.

A time or slowdown is compared as a share of its value without the change (`effect.py`), a count as
a difference, which is shown if its interval excludes 0. A change costs something if a figure is
higher by more than THRESHOLD, or if flows do not finish that finish without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from math import inf

from emu.measure.bootstrap import Interval, interval_of
from emu.sensitivities.change import Change, Kind
from emu.sensitivities.effect import Effect, Rows, effect_of
from emu.sweeps.store import Row
from emu.tuning.goals import Goal
from emu.words import counted

THRESHOLD = 0.05
"""Of the value without the change."""


@dataclass(frozen=True)
class Count:
    """A count with and without a change."""

    column: str
    before: Interval | None
    after: Interval | None
    difference: Interval | None
    """None: no seed has both."""


@dataclass(frozen=True)
class Cost:
    """All that a change costs."""

    change: Change
    effects: Sequence[Effect]
    counts: Sequence[Count]
    seeds: int
    """Runs that are over."""
    stuck: int
    """Seeds with flows that do not finish, or whose run fails, though not without the change."""
    remarks: Sequence[str]
    """What else is wrong, in words: unfinished flows, failed checks, failed runs."""

    @cached_property
    def worst(self) -> Effect | None:
        """The figure that is raised most; None if none is."""
        raised = [own for own in self.effects if own.shown > 0]
        return max(raised, key=lambda own: own.shown, default=None)

    @cached_property
    def best(self) -> Effect | None:
        """The figure that is lowered most; None if none is."""
        lowered = [own for own in self.effects if own.shown < 0]
        return min(lowered, key=lambda own: own.shown, default=None)

    @property
    def amount(self) -> float:
        """The share by which the worst figure is higher; infinite if flows do not finish."""
        if self.stuck:
            return inf
        return self.worst.shown if self.worst is not None else 0.0

    @property
    def is_costly(self) -> bool:
        return self.amount > THRESHOLD

    @property
    def is_gain(self) -> bool:
        """Whether it is another value of a setting that lowers a figure by more than THRESHOLD, and
        raises none by as much."""
        is_setting = self.change.kind is Kind.SETTING and not self.is_costly
        return is_setting and self.best is not None and self.best.mean < -THRESHOLD

    @property
    def order(self) -> tuple[float, ...]:
        """Costs in ascending order: the most expensive first."""
        raised = self.worst.shown if self.worst is not None else 0.0
        gained = self.best.mean if self.best is not None else 0.0
        return -self.stuck, -raised, -gained


def cost_of(
    change: Change, before: Rows, after: Rows, goals: Sequence[Goal], columns: Sequence[str]
) -> Cost:
    """What a change costs. `before`: the runs without it; `columns`: those of counts."""
    seeds = [seed for seed in after if seed in before]
    return Cost(
        change,
        [effect_of(goal, after, before) for goal in goals],
        [_count(column, seeds, before, after) for column in columns],
        len(after),
        sum(_is_stuck(after[seed]) and not _is_stuck(before[seed]) for seed in seeds),
        list(_remarks(before, after)),
    )


def _is_stuck(row: Row) -> bool:
    return bool(row["error"] or row.get("unfinished_flows"))


def _count(column: str, seeds: Sequence[int], before: Rows, after: Rows) -> Count:
    pairs = [(before[seed].get(column), after[seed].get(column)) for seed in seeds]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return Count(column, None, None, None)
    return Count(
        column,
        interval_of([a for a, _ in known]),
        interval_of([b for _, b in known]),
        interval_of([b - a for a, b in known]),
    )


def _remarks(before: Rows, after: Rows) -> Iterator[str]:
    failed = [row["error"] for row in after.values() if row["error"]]
    if failed:
        yield f"fails in {_of_seeds(failed, after)}: {failed[0]}"
    for column, what in _WRONG.items():
        wrong = [row[column] for row in after.values() if row.get(column)]
        usual = [row[column] for row in before.values() if row.get(column)]
        if wrong and max(wrong) > max(usual, default=0):
            yield f"{what}: up to {max(wrong):,}, in {_of_seeds(wrong, after)}"


def _of_seeds(some: Sized, of: Sized) -> str:
    return f"{len(some)} of {counted(len(of), 'seed')}"


_WRONG = {
    "unfinished_flows": "unfinished flows",
    "failed_queue_pairs": "failed queue pairs",
    "checks_failed": "failed checks",
}
"""Column -> what is wrong if it is not 0."""
