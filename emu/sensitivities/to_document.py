"""What changes cost, as its document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import emu
from emu.measure.bootstrap import Interval
from emu.measure.interval_entries import (
    DifferenceEntry,
    difference_entry,
    intervals_entry,
    runs_entry,
)
from emu.report.run_figures import unit_of
from emu.sensitivities.costs import THRESHOLD, Cost
from emu.sensitivities.document import (
    SENSITIVITY_SCHEMA,
    ChangeEntry,
    FabricEntry,
    Sensitivity,
)
from emu.sensitivities.effect import Effect

if TYPE_CHECKING:
    from emu.sensitivities.measure import Measured, Result


def document(measured: Measured) -> Sensitivity:
    return {
        "schema": SENSITIVITY_SCHEMA,
        "name": measured.setup.name,
        "version": emu.__version__,
        "seeds": list(measured.setup.seeds),
        "computed": measured.computed,
        "failed": measured.failed,
        "missing": measured.missing,
        "threshold": THRESHOLD,
        "fabrics": [_fabric(own) for own in measured.results],
        "intervals": intervals_entry(),
    }


def _fabric(own: Result) -> FabricEntry:
    places = own.side.places
    return {
        "name": own.side.name,
        "fabric": own.side.spec.fabric,
        "switch": places.switch,
        "sender": places.sender,
        "receiver": places.receiver,
        "figures": [
            {"name": goal.name, "columns": list(goal.figure.columns), "unit": goal.figure.unit}
            for goal in own.goals
        ],
        "changes": [_change(cost) for cost in own.costs],
        "left_out": [
            {"name": left.name, "kind": left.kind.value, "reason": left.reason}
            for left in own.left_out
        ],
    }


def _change(cost: Cost) -> ChangeEntry:
    return {
        "name": cost.change.name,
        "kind": cost.change.kind.value,
        "what": cost.change.what,
        "settings": dict(cost.change.settings),
        "costs_more": cost.is_costly,
        "stuck_seeds": cost.stuck,
        "remarks": list(cost.remarks),
        "shares": {own.goal.name: _share(own) for own in cost.effects},
        "counts": {
            own.column: {
                "unit": unit_of(own.column),
                "before": _entry(own.before),
                "after": _entry(own.after),
                "difference": _entry(own.difference),
            }
            for own in cost.counts
        },
    }


def _share(own: Effect) -> DifferenceEntry | None:
    return None if own.share is None else {**runs_entry(own.share), "differs": own.is_shown}


def _entry(own: Interval | None) -> DifferenceEntry | None:
    return None if own is None else difference_entry(own)
