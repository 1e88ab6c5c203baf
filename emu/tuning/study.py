"""Optuna's study, in a file of the folder, so that a search can go on.

    study.journal    what was asked and told, a line for each step; several studies may be in it

The name of a study is a hash of what decides its trials: the spec, the keys with their ranges, the
goals, constraints and seeds, the model, the version of emu and the compiled core. The same command
in the same folder goes on with its study; another one begins a study beside it, and both use the
same runs. Trials that were in the middle when a search was stopped are asked again.

The sampler is the tree-structured Parzen estimator: it takes several goals, constraints, keys with
numbers and with words, and trials that run at the same time. It draws all keys together, as some
belong together: kmin is below kmax. Its seed is the spec's, so that with
one worker a study can be repeated; with several, what is asked next depends on what ended first.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import NopPruner, WilcoxonPruner
from optuna.samplers import TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from emu.errors import EmuError
from emu.sweeps.plan import key_of
from emu.tuning.goals import Constraint, Goal
from emu.tuning.request import Setup
from emu.tuning.starts import starts

JOURNAL = "study.journal"
_SURE = 0.26
"""The probability of chance below which a trial is pruned: worse in both of two seeds is 1/4."""
_LETTERS = 16
_MOST_SEED = 2**32


def open_study(
    setup: Setup, goals: Sequence[Goal], constraints: Sequence[Constraint], folder: Path
) -> optuna.Study:
    """The study of a search: that in the folder, or a new one. Raises EmuError for a file that is
    no journal."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("optuna").setLevel(logging.ERROR)
    path = folder / JOURNAL
    try:
        study = optuna.create_study(
            study_name=identity(setup, goals, constraints),
            storage=JournalStorage(JournalFileBackend(str(path))),
            directions=["maximize" if goal.maximise else "minimize" for goal in goals],
            pruner=_pruner(goals),
            load_if_exists=True,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise EmuError(f"{path}: is no journal of a study ({error}); remove it") from None
    trials = study.get_trials(deepcopy=False)
    study.sampler = TPESampler(seed=(setup.spec.seed + len(trials)) % _MOST_SEED, multivariate=True)
    if trials:
        _ask_again(study)
    else:
        for start in starts(setup.spec, setup.parameters):
            study.enqueue_trial(start)
    return study


def identity(setup: Setup, goals: Sequence[Goal], constraints: Sequence[Constraint]) -> str:
    """The name of the study: all that decides its trials, as a hash."""
    request = setup.request
    made_of: Mapping[str, Any] = {
        "spec": key_of(setup.basis.bases[""], {}, request.model),
        "vary": {own.key: own.text for own in setup.parameters},
        "goals": [goal.words for goal in goals],
        "constraints": [own.words for own in constraints],
        "seeds": setup.seeds,
    }
    digest = sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()
    return f"{setup.spec.name}-{digest[:_LETTERS]}"


def _pruner(goals: Sequence[Goal]) -> optuna.pruners.BasePruner:
    """With one goal, Wilcoxon's signed-rank test against the best trial, seed by seed: what a seed
    does to both cancels out, and trials that violate a constraint are no measure, as they would be
    for a median. With several goals Optuna has none; `search.py` has a rule of its own."""
    if len(goals) > 1:
        return NopPruner()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return WilcoxonPruner(p_threshold=_SURE)


def _ask_again(study: optuna.Study) -> None:
    """Ends the trials that nobody works on any more, and queues what they had drawn."""
    for own in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(own.number, state=TrialState.FAIL)
        study.enqueue_trial(own.params)
