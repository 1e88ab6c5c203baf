"""A search as its document."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import emu
from emu.measure.interval_entries import intervals_entry, runs_entry
from emu.tuning.charts import importances
from emu.tuning.document import (
    TUNE_SCHEMA,
    ContestEntry,
    JudgementEntry,
    TrialEntry,
    Tune,
)
from emu.tuning.judge import Contest, Judgement
from emu.tuning.trials import Trial

if TYPE_CHECKING:
    from emu.tuning.tune import Tuned


def document(tuned: Tuned) -> Tune:
    setup = tuned.setup
    return {
        "schema": TUNE_SCHEMA,
        "name": setup.spec.name,
        "version": emu.__version__,
        "model": setup.request.model,
        "study": tuned.study.study_name,
        "varied": [
            {"key": own.key, "values": own.text, "why": own.why, "column": own.column.name}
            for own in setup.parameters
        ],
        "goals": [
            {
                "name": goal.name,
                "maximise": goal.maximise,
                "columns": list(goal.figure.columns),
                "unit": goal.figure.unit,
            }
            for goal in tuned.goals
        ],
        "constraints": [own.words for own in tuned.constraints],
        "seeds": setup.seeds,
        "held_out_seeds": setup.held_out_seeds,
        "computed": tuned.computed,
        "stopped": tuned.stop is not None,
        "trials": [_trial(own) for own in tuned.trials],
        "importances": {
            goal.name: importances(tuned, place) for place, goal in enumerate(tuned.goals)
        },
        "front": [own.number for own in tuned.front],
        "winner": None if tuned.winner is None else _trial(tuned.winner),
        "accepted": tuned.is_accepted,
        "judgement": None if tuned.judgement is None else _judgement(tuned.judgement),
        "intervals": intervals_entry(),
    }


def _trial(own: Trial) -> TrialEntry:
    trial = {
        "trial": own.number,
        "how": own.how,
        "settings": dict(own.settings),
        "means": own.means,
        "seeds": list(own.by_seed),
        "broken": dict(own.broken),
        "error": own.error,
    }
    return cast(TrialEntry, trial)


def _judgement(own: Judgement) -> JudgementEntry:
    return {
        "sentences": list(own.sentences()),
        "winner_violations": dict(own.violations),
        "contests": [_contest(contest) for contest in own.contests],
    }


def _contest(own: Contest) -> ContestEntry:
    return {
        "rival": own.rival,
        "load": own.load.factor,
        "changes": dict(own.load.changes),
        "verdict": own.verdict.value,
        "violations": own.violations,
        "gains": {
            name: None if gain is None else runs_entry(gain) for name, gain in own.gains.items()
        },
    }
