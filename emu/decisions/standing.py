"""How the candidates stand beside each other in one figure, seed by seed.

fits       every run ends, all flows finish, and no check of the spec fails
fastest    of those that fit, the one with the best mean
behind     by what share a candidate is worse than the fastest, seed by seed
near       behind by no more than the margin, or by nothing that the seeds show
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emu.measure.bootstrap import Interval
from emu.sensitivities.effect import Effect, Rows, effect_of
from emu.tuning.goals import Goal
from emu.tuning.judge import mean_of


@dataclass(frozen=True)
class Standing:
    """A candidate beside the fastest."""

    name: str
    rows: Rows
    figure: Interval | None
    """The mean over the seeds; None: no run has the figure."""
    behind: Effect | None
    """The share by which it is worse than the fastest; None: one of the two has no figure."""
    faults: Sequence[str]
    """Why it does not fit, in words; empty if it does."""

    @property
    def fits(self) -> bool:
        return not self.faults

    def is_near(self, margin: float) -> bool:
        """Whether it fits and is as good as the fastest, within this share."""
        if not self.fits or self.behind is None:
            return False
        return self.behind.mean <= margin or not self.behind.is_shown


def standings_of(rows: Mapping[str, Rows], goal: Goal) -> dict[str, Standing]:
    """The candidates with these rows, in the same order."""
    faults = {name: _faults(own, goal) for name, own in rows.items()}
    figures = {name: mean_of(goal, own) for name, own in rows.items()}
    fastest = _fastest({name: figures[name] for name in rows if not faults[name]}, goal)
    return {
        name: Standing(
            name,
            own,
            figures[name],
            None if fastest is None else _behind(own, rows[fastest], goal),
            faults[name],
        )
        for name, own in rows.items()
    }


def _fastest(figures: Mapping[str, Interval | None], goal: Goal) -> str | None:
    known = {name: own.mean for name, own in figures.items() if own is not None}
    best = max if goal.maximise else min
    return best(known, key=known.__getitem__) if known else None


def fastest(standings: Mapping[str, Standing], goal: Goal) -> Standing | None:
    """The best of those that fit; None if none does."""
    name = _fastest({name: own.figure for name, own in standings.items() if own.fits}, goal)
    return None if name is None else standings[name]


def _behind(own: Rows, other: Rows, goal: Goal) -> Effect | None:
    effect = effect_of(goal, own, other)
    return effect if effect.shares else None


def _faults(rows: Rows, goal: Goal) -> list[str]:
    seeds = len(rows)
    found = []
    for what, count in (
        ("the run fails", sum(bool(row["error"]) for row in rows.values())),
        ("flows do not finish", sum(bool(row.get("unfinished_flows")) for row in rows.values())),
        ("checks fail", sum(bool(row.get("checks_failed")) for row in rows.values())),
    ):
        if count:
            found.append(f"{what} with {count} of {seeds} seeds")
    if not found and any(goal.value(row) is None for row in rows.values()):
        found.append(f"it has no {goal.name} with some seeds")
    return found
