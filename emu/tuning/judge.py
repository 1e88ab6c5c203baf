"""The judgement: is the winner better than each rival on runs that the search has not seen?

    better      the rival violates a constraint, and the winner does not; or a goal is better, and
                none is worse
    worse       a goal is worse
    no difference shown

*Better* and *worse* are what differences show: those of a goal, seed by seed, whose interval
excludes 0 (`emu.measure.bootstrap`). The winner is accepted if it violates no constraint in any run
and is better than every rival under every load. Nothing is picked from several comparisons, since
all must hold; so their number makes no chance result likelier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from emu.measure.bootstrap import Interval, interval_of
from emu.report.run_figures import written
from emu.tuning.goals import Constraint, Goal
from emu.tuning.held_out import WINNER, HeldOut, Load, Rows
from emu.words import counted, listed


class Verdict(StrEnum):
    """How the winner compares with a rival."""

    BETTER = "better"
    SAME = "no difference shown"
    WORSE = "worse"


@dataclass(frozen=True)
class Contest:
    """The winner and a rival under a load."""

    rival: str
    load: Load
    gains: Mapping[str, Interval | None]
    """Goal -> by how much the winner is better, seed by seed; None: no seed has both."""
    violations: int
    """Seeds with which the rival violates a constraint, fails, or has no figure of a goal."""

    @property
    def verdict(self) -> Verdict:
        shown = [own.mean for own in self.gains.values() if own is not None and own.excludes_zero]
        if self.violations:
            return Verdict.BETTER
        if any(mean < 0 for mean in shown):
            return Verdict.WORSE
        return Verdict.BETTER if shown else Verdict.SAME


@dataclass(frozen=True)
class Judgement:
    """What came out of all contests."""

    contests: Sequence[Contest]
    violations: Mapping[str, int]
    """Load -> seeds with which the winner violates a constraint, fails or lacks a goal."""
    seeds: int

    @property
    def is_accepted(self) -> bool:
        return not any(self.violations.values()) and all(
            own.verdict is Verdict.BETTER for own in self.contests
        )

    def sentences(self) -> Iterator[str]:
        """Why the winner is accepted or refused."""
        for load, count in self.violations.items():
            if count:
                yield (
                    f"Refused: under {load} the winner violates a constraint, or does not finish, "
                    f"in {count} of {self.seeds} held-out seeds."
                )
        for verdict, words in _WORDS.items():
            places = [
                f"{own.rival} ({own.load.name})" for own in self.contests if own.verdict is verdict
            ]
            if places:
                yield f"Refused: the winner {words} {listed(places)}."
        if self.is_accepted:
            broken = {own.rival for own in self.contests if own.violations}
            rivals = dict.fromkeys(own.rival for own in self.contests)
            better = [name for name in rivals if name not in broken]
            better_than = f"is better than {listed(better)}" if better else "keeps the constraints"
            yield (
                f"Accepted: on {counted(self.seeds, 'held-out seed')} the winner {better_than}, "
                f"under {listed(list(self.violations))}."
            )
            if broken:
                yield (
                    f"{listed(sorted(broken))} did not compete: a constraint is violated, or a run "
                    "does not finish."
                )


_WORDS = {
    Verdict.WORSE: "is worse than",
    Verdict.SAME: "is not shown to be better than",
}


def judge(
    held_out: HeldOut, goals: Sequence[Goal], constraints: Sequence[Constraint], seeds: int
) -> Judgement:
    """The judgement over all held-out runs. `seeds`: how many there are of each."""
    contests = []
    violations = {}
    for load in held_out.loads:
        own = held_out.rows[WINNER, load.factor]
        violations[load.name] = violated(own, goals, constraints)
        for (name, factor), rows in held_out.rows.items():
            if name != WINNER and factor == load.factor:
                gains = {goal.name: _gain(goal, own, rows) for goal in goals}
                broken = violated(rows, goals, constraints)
                contests.append(Contest(name, load, gains, broken))
    return Judgement(contests, violations, seeds)


def violated(rows: Rows, goals: Sequence[Goal], constraints: Sequence[Constraint]) -> int:
    """The number of runs that failed, lack a goal's figure, or violate a constraint."""
    return sum(
        bool(row["error"])
        or any(goal.value(row) is None for goal in goals)
        or any(own.excess(row) > 0 for own in constraints)
        for row in rows.values()
    )


def means_of_feasible(
    rivals: Iterable[Rows], goals: Sequence[Goal], constraints: Sequence[Constraint]
) -> list[list[float]]:
    """The means of each goal, of each rival that violates nothing."""
    kept = [rows for rows in rivals if not violated(rows, goals, constraints)]
    means = [[mean_of(goal, rows) for goal in goals] for rows in kept]
    return [[own.mean for own in each if own is not None] for each in means]


def _gain(goal: Goal, own: Rows, other: Rows) -> Interval | None:
    pairs = [
        (goal.value(row), goal.value(other[seed])) for seed, row in own.items() if seed in other
    ]
    gains = [goal.gain(a, b) for a, b in pairs if a is not None and b is not None]
    return interval_of(gains) if gains else None


def mean_of(goal: Goal, rows: Rows) -> Interval | None:
    """The mean of a goal over the seeds; None if no run has it."""
    values = [value for row in rows.values() if (value := goal.value(row)) is not None]
    return interval_of(values) if values else None


def gain_in_words(goal: Goal, gain: Interval) -> str:
    """`better by 12.3 us`."""
    if not gain.excludes_zero:
        return Verdict.SAME
    how = "better" if gain.mean > 0 else "worse"
    return f"{how} by {written(abs(gain.mean), goal.figure.unit)}"
