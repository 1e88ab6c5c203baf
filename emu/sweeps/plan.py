"""The runs of a sweep, and the key of each.

The key is a hash of all that decides the results: the spec with the point's changes and the seed,
the files that it names, the model, the version of the package and the compiled core. Two points
with the same key are one run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import emu
from emu.errors import EmuError, SpecError, UsageError
from emu.regular import open_regular
from emu.spec.diagnostic import Place, Places
from emu.spec.document import Document
from emu.spec.scenario import Spec
from emu.spec.settings import change
from emu.spec.validation import files_named
from emu.sweeps.points import VARIANT, Settings
from emu.sweeps.units import KeyColumn, key_column
from emu.sweeps.work import Task, runner_for, spec_at

_KEY_LETTERS = 32
_OF_CAPTURES = ("checksums", "marks")
"""Checks that read captures."""


@dataclass(frozen=True)
class PlannedRun:
    """One run: a point of the sweep with one seed."""

    key: str
    point: int
    """The number of the point, counted from 0."""
    variant: str
    """The name of the variant; empty for the spec itself."""
    seed: int
    settings: Settings


@dataclass(frozen=True)
class Basis:
    """What all runs have in common, of a sweep or of a search that chooses its points later."""

    name: str
    bases: Mapping[str, str]
    """Variant -> its spec as JSON, without captures and variants (`base_of`)."""
    columns: Sequence[KeyColumn]
    """Of the varied keys."""
    model: str
    tables: tuple[str, ...]
    option: str

    def run(self, point: int, settings: Settings, seed: int, variant: str = "") -> PlannedRun:
        """The run of a point with a seed."""
        key = key_of(self.bases[variant], {**settings, "seed": seed}, self.model)
        return PlannedRun(key, point, variant, seed, settings)

    def task(self, run: PlannedRun) -> Task:
        settings = {**run.settings, "seed": run.seed}
        return Task(
            run.key, self.bases[run.variant], settings, self.option, self.model, self.tables
        )

    @property
    def has_variants(self) -> bool:
        return "" not in self.bases


@dataclass(frozen=True)
class Plan(Basis):
    """All runs of a sweep."""

    runs: Sequence[PlannedRun]
    """Each key once. All points with the first seed come first, so that a sweep that is stopped has
    been everywhere."""


def plan(
    spec: Spec,
    points: Sequence[Settings],
    *,
    variants: Sequence[str],
    seeds: Sequence[int],
    model: str,
    tables: tuple[str, ...],
    option: str,
) -> Plan:
    """The runs of these points with these seeds. `variants`: names of variants of the spec, or none
    for the spec itself. A point's own `variant` and `seed` come before both.

    Raises SpecError with all findings if no valid point has some key, so that a key that does not
    exist starts nothing.
    """
    named = [str(point[VARIANT]) for point in points if VARIANT in point]
    bases = _bases(spec, [*variants, *named])
    runs: dict[str, PlannedRun] = {}
    everywhere = variants or [""]
    for seed in seeds:
        places = ((point, name) for point in points for name in _variants_of(point, everywhere))
        for number, (point, variant) in enumerate(places):
            settings = {key: value for key, value in point.items() if key not in (VARIANT, "seed")}
            own = int(point.get("seed", seed))
            key = key_of(bases[variant], {**settings, "seed": own}, model)
            runs.setdefault(key, PlannedRun(key, number, variant, own, settings))
    keys = dict.fromkeys(key for run in runs.values() for key in run.settings)
    columns = [
        key_column(key, [run.settings[key] for run in runs.values() if key in run.settings])
        for key in keys
    ]
    used = {run.variant: bases[run.variant] for run in runs.values()}
    made = Plan(spec.name, used, columns, model, tables, option, tuple(runs.values()))
    _refuse_bad_keys(made)
    return made


def _variants_of(point: Settings, everywhere: Sequence[str]) -> Sequence[str]:
    return [str(point[VARIANT])] if VARIANT in point else everywhere


def _bases(spec: Spec, names: Sequence[str]) -> dict[str, str]:
    """The specs of the variants, and the spec itself by the empty name."""
    known = spec.variants() if names else {}
    return {"": base_of(spec)} | {name: base_of(known[name]) for name in dict.fromkeys(names)}


def base_of(spec: Spec) -> str:
    """The spec without what a sweep does not need: captures, unless a check reads them, and the
    bytes of messages, unless the spec says `payload: real`. Times and counters are the same."""
    data = spec.to_mapping()
    data.pop("compare", None)
    if not any(check.kind in _OF_CAPTURES for check in spec.verify):
        data.pop("capture", None)
        data.setdefault("payload", "elided")
    return json.dumps(data)


def key_of(base: str, settings: Settings, model: str) -> str:
    """The key of a run: what it is made of, as a hash in hexadecimal digits."""
    data, left_over = _changed(base, settings)
    made_of = {
        "spec": data,
        "left over": left_over,
        "files": [_digest(path) for path in files_named(data)],
        "model": model,
        "version": emu.__version__,
        "core": _core_digest(),
    }
    text = json.dumps(made_of, sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()[:_KEY_LETTERS]


def _changed(base: str, settings: Settings) -> tuple[dict[str, Any], Settings]:
    """The spec's data with the changes; and all changes if one of them cannot be made, as such a
    point fails, and needs a key of its own."""
    document = Document(json.loads(base), Places(Place(0, 0, "")))
    for key, value in settings.items():
        change(document, key, value, key)
    return document.data, settings if document.findings else {}


@cache
def _core_digest() -> str:
    """The hash of the compiled core."""
    from emu import _core

    return _digest(Path(_core.__file__))


def _digest(path: Path) -> str:
    """The hash of a file; empty if it cannot be read, since then the run says so."""
    try:
        with open_regular(path) as file:
            return sha256(file.read()).hexdigest()
    except (OSError, ValueError):
        return ""


def _refuse_bad_keys(made: Plan) -> None:
    """Raises the errors of all points if no point with a certain key is valid."""
    runner = runner_for(made.model)
    missing = {column.key for column in made.columns}
    errors: dict[str, EmuError] = {}
    any_valid = False
    for run in _with_first_seed(made.runs):
        if any_valid and not missing & run.settings.keys():
            continue
        try:
            task = made.task(run)
            runner.refuse(spec_at(task.spec, task.settings, made.option))
        except (SpecError, UsageError) as error:
            errors.setdefault(str(error), error)
            continue
        any_valid = True
        missing -= run.settings.keys()
        if not missing:
            return
    if not errors:
        return
    findings = [line for error in errors.values() for line in _lines(error)]
    raise SpecError(list(dict.fromkeys(findings)))


def _with_first_seed(runs: Sequence[PlannedRun]) -> Iterator[PlannedRun]:
    seen: set[int] = set()
    for run in runs:
        if run.point not in seen:
            seen.add(run.point)
            yield run


def _lines(error: EmuError) -> Sequence[str]:
    return error.findings if isinstance(error, SpecError) else [str(error)]
