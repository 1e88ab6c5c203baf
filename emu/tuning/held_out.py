"""Runs that a search has not seen: other seeds, and other loads.

A setting that was chosen by its results on some seeds looks better on these than it is, as the best
of many trials was also lucky. So the winner and its rivals run with further seeds, under the spec's
load and under others. A load is changed by its key:

    rate      bits of messages that a host offers in a second (background load)
    size      bytes of a message, or of a collective's buffer
    block     bytes of an I/O (storage)
    tokens    tokens of a rank (a layer of experts)

Entries without such a key, as traces and training steps, stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emu.errors import SpecError
from emu.spec.scenario import Spec
from emu.spec.traffic.entry import TrafficEntry
from emu.sweeps.evaluate import Evaluator
from emu.sweeps.store import Row
from emu.sweeps.work import spec_at
from emu.tuning.request import Setup
from emu.units import write_rate, write_size

_SECTOR = 512
"""Blocks of drives are multiples of it; other sizes are of 64 bytes, a whole number of float32s."""
WINNER = "winner"


@dataclass(frozen=True)
class Load:
    """A load, as changes of the spec."""

    factor: float
    """1: the spec's own."""
    changes: Mapping[str, Any]

    @property
    def name(self) -> str:
        return "the spec's load" if self.factor == 1 else f"load x {self.factor:g}"


def loads_of(setup: Setup) -> list[Load]:
    """The spec's load, and the others that its entries can have. Only the first if they have no key
    for it, or if the spec's rules refuse the others."""
    basis, spec = setup.basis, setup.spec
    found = [Load(1, {})]
    for factor in setup.request.loads:
        changes = dict(_scaled(spec, factor))
        if changes and _is_valid(basis.bases[""], changes):
            found.append(Load(factor, changes))
    return found


def _scaled(spec: Spec, factor: float) -> Iterator[tuple[str, Any]]:
    for entry in spec.traffic:
        for key, field, write in _LOADS:
            value = getattr(entry, field, None)
            if value is not None:
                yield f"traffic.{entry.name}.{key}", write(value * factor)
                break


def entries_without_load(spec: Spec) -> list[TrafficEntry]:
    """The entries that no load changes."""
    return [
        entry
        for entry in spec.traffic
        if all(getattr(entry, field, None) is None for _, field, _ in _LOADS)
    ]


def _size(value: float, step: int = 64) -> str:
    own = step if value >= step else 1
    return write_size(max(1, round(value / own) * own))


_LOADS = (
    ("rate", "rate_bps", lambda value: write_rate(round(value))),
    ("size", "size_bytes", _size),
    ("block", "block_bytes", lambda value: _size(value, _SECTOR)),
    ("tokens", "tokens", lambda value: max(1, round(value))),
)
"""The key of a load, the field of the entry, and what writes a value."""


def _is_valid(base: str, changes: Mapping[str, Any]) -> bool:
    try:
        spec_at(base, changes, "load")
    except SpecError:
        return False
    return True


Rows = Mapping[int, Row]
"""Seed -> the row of its run."""


@dataclass(frozen=True)
class HeldOut:
    """The rows of all held-out runs."""

    loads: Sequence[Load]
    rows: Mapping[tuple[str, float], Rows]
    """(WINNER or a rival's name, factor of the load) -> its rows."""


_Entry = tuple[str, Load, Mapping[str, Any]]
"""WINNER or a rival's name, a load, and settings."""


def run_held_out(setup: Setup, settings: Mapping[str, Any], evaluator: Evaluator) -> HeldOut:
    """Runs the winner, which has these settings, and its rivals. Raises FabricError."""
    loads = loads_of(setup)
    entries = [
        (name, load, changes) for load in loads for name, changes in _entries(setup, settings)
    ]
    return HeldOut(loads, _rows(setup, entries, setup.held_out_seeds, evaluator))


def run_rivals(setup: Setup, evaluator: Evaluator) -> dict[str, Rows]:
    """Runs the rivals with the seeds of the search. Raises FabricError."""
    load = Load(1, {})
    entries: list[_Entry] = [(own.name, load, {}) for own in setup.rivals]
    rows = _rows(setup, entries, setup.seeds, evaluator)
    return {name: own for (name, _), own in rows.items()}


def _entries(setup: Setup, settings: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield WINNER, settings
    for own in setup.rivals:
        yield own.name, {}


def _rows(
    setup: Setup,
    entries: Sequence[_Entry],
    seeds: Sequence[int],
    evaluator: Evaluator,
) -> dict[tuple[str, float], dict[int, Row]]:
    """The rows of all entries with all seeds. A point of these runs is the number of an entry."""
    waiting = 0
    for point, (name, load, settings) in enumerate(entries):
        base = "" if name == WINNER else name
        for seed in seeds:
            changes = {**load.changes, **settings}
            evaluator.submit(setup.basis.run(point, changes, seed, base))
            waiting += 1
    rows: list[dict[int, Row]] = [{} for _ in entries]
    while waiting:
        for run, row in evaluator.ended():
            rows[run.point][run.seed] = row
            waiting -= 1
    return {(name, load.factor): own for (name, load, _), own in zip(entries, rows, strict=True)}
