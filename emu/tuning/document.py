"""A search as data for programs: `tune.json`, and what `emu tune --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import emu
from emu.measure.bootstrap import LEVEL, METHOD, RESAMPLES, Interval
from emu.tuning.charts import importances
from emu.tuning.judge import Judgement
from emu.tuning.trials import Trial

if TYPE_CHECKING:
    from emu.tuning.tune import Tuned

SCHEMA = "emu.tune/1"


def document(tuned: Tuned) -> dict[str, Any]:
    """All of it as data for programs."""
    setup = tuned.setup
    return {
        "schema": SCHEMA,
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
                "columns": goal.figure.columns,
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
        "winner": tuned.winner and _trial(tuned.winner),
        "accepted": tuned.is_accepted,
        "judgement": tuned.judgement and _judgement(tuned.judgement),
        "intervals": {"method": METHOD, "resamples": RESAMPLES, "level": LEVEL},
    }


def _trial(own: Trial) -> dict[str, Any]:
    return {
        "trial": own.number,
        "how": own.how,
        "settings": own.settings,
        "means": own.means,
        "seeds": list(own.by_seed),
        "broken": own.broken,
        "error": own.error,
    }


def _judgement(own: Judgement) -> dict[str, Any]:
    return {
        "sentences": list(own.sentences()),
        "winner_violations": own.violations,
        "contests": [
            {
                "rival": contest.rival,
                "load": contest.load.factor,
                "changes": contest.load.changes,
                "verdict": contest.verdict.value,
                "violations": contest.violations,
                "gains": {name: gain and _interval(gain) for name, gain in contest.gains.items()},
            }
            for contest in own.contests
        ],
    }


def _interval(own: Interval) -> dict[str, Any]:
    return {"mean": own.mean, "low": own.low, "high": own.high, "runs": own.values}
