"""A decision as its document: all that was found out about each fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import emu
from emu.decisions.choice import Evidence
from emu.decisions.document import (
    DECISION_SCHEMA,
    CostEntry,
    Decision,
    FabricEntry,
    FigureEntry,
    StandingEntry,
)
from emu.decisions.prices import Bill
from emu.decisions.reasons import reasons
from emu.decisions.standing import Standing
from emu.decisions.turns import changes
from emu.measure.bootstrap import Interval
from emu.measure.interval_entries import MeanEntry, intervals_entry, mean_entry
from emu.tuning.goals import Goal

if TYPE_CHECKING:
    from emu.decisions.decide import Decided


def document(decided: Decided) -> Decision:
    choice, setup = decided.choice, decided.setup
    return {
        "schema": DECISION_SCHEMA,
        "name": setup.name,
        "version": emu.__version__,
        "recommended": None if choice is None else choice.best.name,
        "decided_by": None if choice is None or choice.criterion is None else choice.criterion.name,
        "near": [] if choice is None else [own.name for own in choice.near],
        "margin": setup.request.margin,
        "reasons": list(reasons(decided)),
        "changes": list(changes(decided)),
        "seeds": list(setup.seeds),
        "computed": decided.computed,
        "figure": _goal(decided.figures.deciding),
        "fabrics": [_fabric(decided, own) for own in decided.evidence.values()],
        "growth": [
            {
                "hosts": grown.size.hosts,
                "model": grown.size.model,
                "settings": dict(grown.size.settings),
                "fabrics": [_standing(name, own) for name, own in grown.standings.items()],
            }
            for grown in decided.growth
        ],
        "left_out": [
            {"name": own.name, "reason": own.reason}
            for own in (*decided.refused, *setup.sizes_refused)
        ],
        "intervals": intervals_entry(),
    }


def _goal(goal: Goal) -> FigureEntry:
    return {
        "name": goal.name,
        "columns": list(goal.figure.columns),
        "unit": goal.figure.unit,
        "good": "large" if goal.maximise else "small",
    }


def _fabric(decided: Decided, own: Evidence) -> FabricEntry:
    origins = {tuning.candidate.name: tuning.origin for tuning in decided.tunings}
    return {
        **_standing(own.name, own.standing),
        "fabric": own.candidate.fabric,
        "rate_bps": own.candidate.rate_bps,
        "settings": origins.get(own.name, ""),
        "spec": own.candidate.spec.to_mapping(),
        "figures": {
            goal.name: [goal.value(row) for row in own.standing.rows.values()]
            for goal in (decided.figures.deciding, *decided.figures.others)
        },
        "changes": len(own.result.costs),
        "costly_changes": [cost.change.name for cost in own.result.costly],
        "cost": None if own.bill is None else _bill(own.bill),
    }


def _standing(name: str, own: Standing) -> StandingEntry:
    return {
        "name": name,
        "fits": own.fits,
        "faults": list(own.faults),
        "value": _mean(own.figure),
        "behind": _mean(own.behind.share if own.behind is not None else None),
    }


def _mean(own: Interval | None) -> MeanEntry | None:
    return None if own is None else mean_entry(own)


def _bill(bill: Bill) -> CostEntry:
    return {
        "currency": bill.currency,
        "total": bill.total,
        "energy": bill.energy,
        "watts": bill.watts,
        "parts": [
            {"part": line.what, "count": line.count, "price": line.price, "watts": line.watts}
            for line in bill.lines
        ],
    }
