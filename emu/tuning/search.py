"""The search: several trials at once, each with one seed after another.

    ask ──▶ valid spec? ── no ──▶ another one; the sampler learns it, and it costs no run
                │ yes
                ▼
            a seed's run ──▶ a constraint violated? ──▶ ended: further seeds cannot mend it
                ▲       └──▶ the last seed?         ──▶ complete
                │       └──▶ clearly worse?         ──▶ pruned
                └── the next seed

*Clearly worse* is, with one goal, Optuna's pruner (`study.py`). With several goals Optuna prunes
nothing; here a trial is pruned when one feasible trial was better than it in every goal at each of
its seeds, two at least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.trial import TrialState

from emu.errors import EmuError, SpecError, UsageError
from emu.runtime.runner import ignore
from emu.sweeps.evaluate import Evaluator
from emu.sweeps.store import Row
from emu.sweeps.work import runner_for, spec_at
from emu.tuning.goals import Constraint, Goal
from emu.tuning.request import Setup
from emu.tuning.trials import BROKEN, BY_SEED, ERROR, SETTINGS, Trial, ended_trials

_MOST_REFUSED = 200
"""Trials in a row whose spec is not valid."""
_MOST_FAILED = 10
"""Trials in a row whose runs failed."""
_LEAST_SEEDS = 2
"""Before a trial is pruned."""


@dataclass
class _Open:
    """A trial that is being measured."""

    trial: optuna.Trial
    settings: dict[str, Any]
    by_seed: dict[int, list[float]] = field(default_factory=dict)


class Search:
    """Trials of a study, until there are as many as wanted."""

    def __init__(
        self,
        setup: Setup,
        study: optuna.Study,
        goals: Sequence[Goal],
        constraints: Sequence[Constraint],
        evaluator: Evaluator,
    ) -> None:
        self._setup, self._study, self._evaluator = setup, study, evaluator
        self._goals, self._constraints = goals, constraints
        self._open: dict[int, _Open] = {}
        self._failed_in_a_row = 0
        self._ended = ended_trials(study)

    @property
    def done(self) -> int:
        """How many trials have ended."""
        return len(self._ended)

    def run(self, on_ended: Callable[[Sequence[Trial]], None] = ignore) -> None:
        """Goes on until all trials have ended. `on_ended` gets all trials whenever one has.

        Raises UsageError if hardly a point of the ranges is a valid spec; EmuError if runs fail
        again and again; FabricError if the cluster has gone.
        """
        self._fill()
        while self._open:
            for run, row in self._evaluator.ended():
                if self._take(self._open[run.point], run.seed, row):
                    self._ended = ended_trials(self._study)
                    on_ended(self._ended)
            self._fill()

    def _fill(self) -> None:
        """Begins trials while workers are idle."""
        wanted = self._setup.request.trials
        while len(self._open) < self._evaluator.width and self.done + len(self._open) < wanted:
            self._begin(self._ask())

    def _ask(self) -> _Open:
        """The next trial with a valid spec."""
        for _ in range(_MOST_REFUSED):
            trial = self._study.ask({p.key: p.distribution for p in self._setup.parameters})
            drawn = trial.params
            settings = {p.key: p.value(drawn[p.key]) for p in self._setup.parameters}
            error = self._refusal(settings)
            if error is None:
                trial.set_user_attr(SETTINGS, settings)
                return _Open(trial, settings)
            trial.set_constraint(_IS_VALID, 1)
            self._study.tell(trial, state=TrialState.PRUNED)
        raise UsageError(
            f"{self._setup.request.option}: {_MOST_REFUSED} points of the ranges in a row are no "
            f"valid specs; narrow the ranges. The last one: {error}"
        )

    def _refusal(self, settings: dict[str, Any]) -> EmuError | None:
        basis = self._setup.basis
        try:
            runner_for(basis.model).refuse(spec_at(basis.bases[""], settings, basis.option))
        except (SpecError, UsageError) as error:
            return error
        return None

    def _begin(self, own: _Open) -> None:
        self._open[own.trial.number] = own
        self._submit(own, self._setup.seeds[0])

    def _submit(self, own: _Open, seed: int) -> None:
        self._evaluator.submit(self._setup.basis.run(own.trial.number, own.settings, seed))

    def _take(self, own: _Open, seed: int, row: Row) -> bool:
        """Takes the run of a seed. Returns whether the trial has ended."""
        if row["error"]:
            return self._fail(own, row["error"])
        self._failed_in_a_row = 0
        values = [goal.value(row) for goal in self._goals]
        own.by_seed[seed] = [
            goal.worst if value is None else value
            for goal, value in zip(self._goals, values, strict=True)
        ]
        own.trial.set_user_attr(BY_SEED, own.by_seed)
        excess = self._excess(row, values)
        if any(excess.values()):
            return self._end(own, TrialState.COMPLETE, excess)
        is_clearly_worse = self._is_clearly_worse(own, seed)
        left = [other for other in self._setup.seeds if other not in own.by_seed]
        if not left:
            return self._end(own, TrialState.COMPLETE, excess)
        if is_clearly_worse:
            return self._end(own, TrialState.PRUNED, excess)
        self._submit(own, left[0])
        return False

    def _excess(self, row: Row, values: Sequence[float | None]) -> dict[str, float]:
        """Constraint -> by how much the run violates it. A run without a goal's figure, as of a
        flow that did not finish, violates one that nobody has to give."""
        found = {own.words: own.excess(row) for own in self._constraints}
        found[_HAS_GOALS] = float(sum(value is None for value in values))
        return found

    def _is_clearly_worse(self, own: _Open, seed: int) -> bool:
        if len(self._goals) == 1:
            own.trial.report(own.by_seed[seed][0], step=seed)
            return own.trial.should_prune()
        if len(own.by_seed) < _LEAST_SEEDS:
            return False
        feasible = (other for other in self._ended if other.is_feasible)
        return any(is_dominated(own.by_seed, other.by_seed, self._goals) for other in feasible)

    def _end(self, own: _Open, state: TrialState, excess: dict[str, float]) -> bool:
        for name, value in excess.items():
            own.trial.set_constraint(name, value)
        own.trial.set_user_attr(BROKEN, {name: value for name, value in excess.items() if value})
        means = [sum(each) / len(own.by_seed) for each in zip(*own.by_seed.values(), strict=True)]
        self._study.tell(own.trial, None if state == TrialState.PRUNED else means, state=state)
        del self._open[own.trial.number]
        return True

    def _fail(self, own: _Open, error: str) -> bool:
        own.trial.set_user_attr(ERROR, error)
        self._study.tell(own.trial, state=TrialState.FAIL)
        del self._open[own.trial.number]
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= _MOST_FAILED:
            raise EmuError(f"{_MOST_FAILED} trials in a row failed; the last one: {error}")
        return True


_HAS_GOALS = "has all goals"
_IS_VALID = "is a valid spec"


def is_dominated(own: dict[int, list[float]], other: Any, goals: Sequence[Goal]) -> bool:
    """Whether `other` was better in every goal at each seed of `own`. Both: seed -> values."""
    return all(
        goal.gain(theirs, ours) > 0
        for seed, values in own.items()
        for goal, ours, theirs in zip(goals, values, other[seed], strict=True)
    )
