"""The runs of all sides: first without changes, then each change, with the same seeds.

    without changes ──▶ places of the traffic ──▶ changes ──▶ with each change

Runs that are in the folder are not done again. All changes run with the first seed first, so that
a measurement that is stopped has been everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from emu.errors import EmuError
from emu.sensitivities.changes import Changes, changes_of
from emu.sensitivities.effect import Rows
from emu.sensitivities.places import SENT, BusiestPlaces, places_of
from emu.sensitivities.request import Setup
from emu.spec.scenario import Spec
from emu.sweeps.evaluate import Evaluator
from emu.sweeps.plan import PlannedRun
from emu.sweeps.progress import SweepLine
from emu.sweeps.store import Row, Store


@dataclass(frozen=True)
class Side:
    """A fabric, its changes, and all runs that are over."""

    name: str
    spec: Spec
    before: Rows
    """Without changes."""
    places: BusiestPlaces
    changes: Changes
    after: dict[int, dict[int, Row]] = field(default_factory=dict)
    """Number of a change -> its rows."""


def run_bases(
    setup: Setup, store: Store, evaluator: Evaluator, stream: TextIO | None
) -> list[Side]:
    """Runs the sides without changes, and finds their changes. Raises EmuError if a run fails."""
    runs = [setup.basis.run(0, {}, seed, name) for seed in setup.seeds for name in setup.sides]
    rows: dict[str, dict[int, Row]] = {name: {} for name in setup.sides}
    with SweepLine(f"{setup.name} as it is", len(runs), 0, stream) as line:
        for run, row in _ended(evaluator, runs):
            rows[run.variant][run.seed] = row
            line.add(failed=bool(row["error"]))
    failed = [
        f"{name}: without any change it fails with seed {seed}: {row['error']}"
        for name, own in rows.items()
        for seed, row in own.items()
        if row["error"]
    ]
    if failed:
        raise EmuError("\n".join(failed))
    return [_side(setup, store, name, rows[name]) for name in setup.sides]


def _side(setup: Setup, store: Store, name: str, rows: Rows) -> Side:
    spec, sent = setup.sides[name], Counter[str]()
    for row in rows.values():
        table = store.table("ports", row["key"])
        sent.update(dict(zip(table["port"], table[SENT].tolist(), strict=True)))
    places = places_of(spec, sent, [row["last_completion_ns"] for row in rows.values()])
    return Side(name, spec, rows, places, changes_of(spec, places, setup.kinds))


def run_changes(
    setup: Setup, sides: Sequence[Side], evaluator: Evaluator, stream: TextIO | None
) -> None:
    """Runs all changes of all sides, and adds their rows. Raises FabricError."""
    runs = [
        setup.basis.run(number, change.settings, seed, side.name)
        for seed in setup.seeds
        for side in sides
        for number, change in enumerate(side.changes.made)
    ]
    after = {side.name: side.after for side in sides}
    with SweepLine(setup.name, len(runs), 0, stream) as line:
        for run, row in _ended(evaluator, runs):
            after[run.variant].setdefault(run.point, {})[run.seed] = row
            line.add(failed=bool(row["error"]))


def _ended(evaluator: Evaluator, runs: Iterable[PlannedRun]) -> Iterator[tuple[PlannedRun, Row]]:
    """The runs with their rows, as they end."""
    waiting = 0
    for run in runs:
        evaluator.submit(run)
        waiting += 1
    while waiting:
        for own in evaluator.ended():
            waiting -= 1
            yield own
