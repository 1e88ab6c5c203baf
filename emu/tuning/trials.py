"""What came out of the trials of a study: the best of them, and the Pareto front.

A trial that was measured with all seeds and kept every constraint is *feasible*. With one goal the
winner is the feasible trial with the best mean. With several goals the feasible trials that no
other one beats are the Pareto front. The winner has to beat its rivals, so it is one of those that
are in no goal worse than any rival on the same seeds, if there are such. Of these it is the nearest
to the ideal:

    ideal       the best mean of each goal among them
    distance    root of the sum of squares, each goal divided by its span among them

It is a compromise; the page has the whole front, each with its settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from emu.tuning.goals import Goal

SETTINGS, BY_SEED, BROKEN, ERROR = "settings", "by_seed", "broken", "error"
"""The names of a trial's attributes in the study."""


@dataclass(frozen=True)
class Trial:
    """One trial that has ended."""

    number: int
    settings: Mapping[str, Any]
    drawn: Mapping[str, Any]
    """What Optuna drew for each key."""
    by_seed: Mapping[int, Sequence[float]]
    """Seed -> the value of each goal."""
    how: str
    """`complete`, `pruned`, `broken` (a constraint) or `failed`."""
    broken: Mapping[str, float]
    """Constraint -> by how much it was violated, at most."""
    error: str

    @property
    def is_feasible(self) -> bool:
        return self.how == COMPLETE

    @property
    def means(self) -> list[float]:
        """The mean of each goal over the seeds that were run; empty if there were none."""
        runs = list(self.by_seed.values())
        return [sum(own) / len(runs) for own in zip(*runs, strict=True)]


COMPLETE, PRUNED, VIOLATED, FAILED = "complete", "pruned", "broken", "failed"


def ended_trials(study: Study) -> list[Trial]:
    """The trials of a study that have ended, in order. Trials whose settings are no valid spec are
    not among these, nor trials in whose middle a search was stopped."""
    return [_trial(own) for own in study.get_trials(deepcopy=False) if _has_ended(own)]


def _has_ended(own: FrozenTrial) -> bool:
    if own.state == TrialState.FAIL:
        return ERROR in own.user_attrs
    return own.state.is_finished() and SETTINGS in own.user_attrs


def _trial(own: FrozenTrial) -> Trial:
    kept = own.user_attrs
    return Trial(
        own.number,
        kept[SETTINGS],
        own.params,
        {int(seed): values for seed, values in kept.get(BY_SEED, {}).items()},
        _how(own),
        kept.get(BROKEN, {}),
        kept.get(ERROR, ""),
    )


def _how(own: FrozenTrial) -> str:
    if own.state == TrialState.FAIL:
        return FAILED
    if own.user_attrs.get(BROKEN):
        return VIOLATED
    return COMPLETE if own.state == TrialState.COMPLETE else PRUNED


def front(trials: Sequence[Trial], goals: Sequence[Goal]) -> list[Trial]:
    """The feasible trials that no other one beats: none is better in one goal and at least as good
    in all. The best in the first goal first; of equal ones the earliest alone."""
    known = [own for own in trials if own.is_feasible and all(map(isfinite, own.means))]
    best: list[Trial] = []
    for own in known:
        others = (other for other in known if other is not own)
        if not any(_beats(other, own, goals) for other in others):
            best.append(own)
    return sorted(best, key=lambda own: _cost(own.means[0], goals[0]))


def _beats(one: Trial, other: Trial, goals: Sequence[Goal]) -> bool:
    gains = [goal.gain(a, b) for goal, a, b in zip(goals, one.means, other.means, strict=True)]
    if not any(gains):
        return one.number < other.number
    return min(gains) >= 0


def _cost(value: float, goal: Goal) -> float:
    return -value if goal.maximise else value


def winner(
    trials: Sequence[Trial], goals: Sequence[Goal], rivals: Sequence[Sequence[float]] = ()
) -> Trial | None:
    """The best trial: of several goals the compromise. None if none is feasible.

    `rivals`: the means of each rival that keeps the constraints, over the search's seeds.
    """
    whole = front(trials, goals)
    best = [own for own in whole if _is_level(own, goals, rivals)] or whole
    if not best:
        return None
    costs = [[_cost(v, goal) for v, goal in zip(own.means, goals, strict=True)] for own in best]
    ends = [(min(own), max(own)) for own in zip(*costs, strict=True)]

    def distance(place: int) -> float:
        shares = (
            (cost - low) / (high - low) if high > low else 0.0
            for cost, (low, high) in zip(costs[place], ends, strict=True)
        )
        return sqrt(sum(share**2 for share in shares))

    return best[min(range(len(best)), key=distance)]


def _is_level(own: Trial, goals: Sequence[Goal], rivals: Sequence[Sequence[float]]) -> bool:
    """Whether a trial is in no goal worse than any rival."""
    return all(
        goal.gain(mean, theirs) >= 0
        for rival in rivals
        for goal, mean, theirs in zip(goals, own.means, rival, strict=True)
    )
