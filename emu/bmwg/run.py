"""Runs the trials of a benchmark.

    for each seed    run                 the spec
                     alone-NAME          each entry of `traffic:` by itself, if it is asked for
                     without-lost-links  the spec without faults that take links away, if it has any

The runs that are only compared with have no checks and no captures. All specs are made before the
first run, so that a mistake in one of them starts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emu.bmwg.failover import lost_links
from emu.bmwg.iterations import Bench, Iteration
from emu.bmwg.trial import Trial
from emu.report.run_view import RunFacts
from emu.report.write import write_run
from emu.runtime import Runner
from emu.runtime.record import record
from emu.spec.fault import fault_names
from emu.spec.model import Spec, changed

_COMPARED: Mapping[str, Any] = {"verify": [], "capture": [], "compare": {}}
"""Keys of a spec that is only compared with."""


@dataclass(frozen=True)
class Specs:
    """The specs of one trial."""

    main: Spec
    alone: Mapping[str, Spec]
    without_faults: Spec | None

    @property
    def every(self) -> list[Spec]:
        others = [] if self.without_faults is None else [self.without_faults]
        return [self.main, *self.alone.values(), *others]


def specs_of(spec: Spec, seeds: int, *, interference: bool) -> list[Specs]:
    """The specs of all trials, a trial for the spec's seed and for those after it. Raises SpecError
    for one that cannot run by itself."""
    return [_specs(spec, spec.seed + further, interference) for further in range(seeds)]


def _specs(spec: Spec, seed: int, interference: bool) -> Specs:
    main = spec if seed == spec.seed else changed(spec, {"seed": seed}, source=f"seed {seed}")
    alone = spec.traffic if interference and len(spec.traffic) > 1 else ()
    lost = lost_links(main)
    return Specs(
        main,
        {entry.name: _with_entry_alone(main, entry.name) for entry in alone},
        _without_lost_links(main) if lost else None,
    )


def _with_entry_alone(spec: Spec, name: str) -> Spec:
    own = [entry for entry in spec.to_mapping()["traffic"] if entry["name"] == name]
    return changed(spec, {**_COMPARED, "traffic": own}, source=f"{name} alone (--interference)")


def _without_lost_links(spec: Spec) -> Spec:
    lost = lost_links(spec)
    names = fault_names(spec.faults)
    faults = spec.to_mapping()["faults"]
    kept = [fault for name, fault in zip(names, faults, strict=True) if name not in lost]
    return changed(spec, {**_COMPARED, "faults": kept}, source="without the lost links")


def run_bench(specs: list[Specs], runner: Runner, out: Path, *, quiet: bool) -> Bench:
    """Runs all trials, and writes each run when it is over. Raises UsageError, before anything
    runs, for a spec that the runner cannot run."""
    for own in specs:
        for spec in own.every:
            runner.refuse(spec)
    first, iterations = None, []
    for own in specs:
        seed = own.main.seed
        place = out / f"seed-{seed}" if len(specs) > 1 else out
        title = f"{own.main.name}, seed {seed}" if len(specs) > 1 else own.main.name
        trial = _run_trial(own, title, runner, place, quiet=quiet)
        first = first or trial
        iterations.append(Iteration.of(trial))
    assert first is not None, "there is at least one seed"
    return Bench(first, tuple(iterations))


def _run_trial(specs: Specs, title: str, runner: Runner, out: Path, *, quiet: bool) -> Trial:
    def ran(spec: Spec, folder: str, which: str) -> RunFacts:
        recorded = record(f"{title}{which}", spec, runner, out / folder, quiet=quiet)
        facts = RunFacts(spec.name, *recorded)
        write_run(facts, out / folder)
        return facts

    return Trial(
        run=ran(specs.main, "run", ""),
        alone={
            name: ran(spec, f"alone-{name}", f", {name} alone")
            for name, spec in specs.alone.items()
        },
        without_faults=None
        if specs.without_faults is None
        else ran(specs.without_faults, "without-lost-links", ", without lost links"),
    )
