"""`emu compare SPEC`: runs the same workload over several fabrics."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TextIO

import click

from emu.cli.options import (
    auto_clock_option,
    is_given,
    json_option,
    model_option,
    out_option,
    quiet_option,
    seeds_option,
    settings_option,
    spec_argument,
    threads_option,
)
from emu.cli.ranks import assists, first_rank
from emu.cli.runner import chosen_runner
from emu.cli.stopping import sigterm_interrupts
from emu.clocks import REAL, VIRTUAL, Clock
from emu.errors import EmuError, ExitCode, UsageError
from emu.models import FLOW, PACKETS
from emu.mpi_environment import mpi_ranks
from emu.report.both_models import BothModels, models_document
from emu.report.clocks import BothClocks, Seeds, clocks_document
from emu.report.reruns import with_seeds
from emu.report.run_view import RunFacts
from emu.report.seeds import OverSeeds, SeedRun, Variant
from emu.report.summary import to_json
from emu.report.text import print_clocks, print_comparison, print_models
from emu.report.verdict import exit_code, worst
from emu.report.write import (
    comparison_document,
    write_clocks,
    write_comparison,
    write_models,
    write_run,
)
from emu.runtime import Runner, runner_of, runner_on
from emu.runtime.record import record
from emu.spec.model import Spec, load_spec


@click.command("compare")
@spec_argument
@settings_option
@auto_clock_option
@click.option("--clocks", is_flag=True, help="Compare the real and the virtual clock instead.")
@model_option
@click.option(
    "--models",
    is_flag=True,
    help="Compare packets on the virtual clock and the flow model instead.",
)
@seeds_option
@threads_option
@out_option
@quiet_option
@json_option
def command(
    path: Path,
    settings: tuple[str, ...],
    clock: str,
    clocks: bool,
    model: str,
    models: bool,
    seeds: int,
    threads: int | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run every variant in SPEC's `compare:` section and compare the results.

    Exits with 1 if a check fails, or if a variant leaves flows unfinished and its spec has no
    `unfinished: allow`.

    With --seeds, run every variant with each seed: tables and JSON then have the mean of each
    figure with its interval, and call a difference only what excludes 0.

    With --clocks, run each variant (or SPEC itself, if it has none) on the real and
    on the virtual clock: the difference is the emulator's own error. If congestion
    control makes runs chaotic, --clocks compares several --seeds.

    With --models, run each variant (or SPEC itself) with packets on the virtual clock and by the
    flow model: the difference is the error of the flow model.
    """
    if assists():
        return
    with first_rank():
        _refuse_both(clocks=clocks, models=models)
        spec = load_spec(path, settings)
        folder = out or Path("out") / spec.name
        stream = sys.stderr if as_json else sys.stdout
        if clocks:
            reseeded = [
                load_spec(path, (*settings, *seed.settings)) for seed in with_seeds(spec, seeds)
            ]
            _compare_clocks(reseeded, folder, stream, as_json, quiet=quiet)
        if models:
            _compare_models(spec, folder, stream, as_json, quiet=quiet)
        if not spec.compare:
            raise UsageError(f"{path}: has no `compare:` section; name the variants to run there")
        variants = spec.variants()
        runner = chosen_runner(model, clock, threads, [*variants.values()], quiet=quiet)
        _refuse([spec], runner)
        done = _run_all(variants, _seeds(spec, seeds), runner, folder, quiet=quiet)
    runs, missing = done.first, list(variants)[len(done.first) :]
    if done.stop is not None and not runs:
        raise done.stop
    over = done.over_seeds if seeds > 1 else None
    files = write_comparison(spec.name, runs, folder, missing, over)
    print_comparison(runs, files, stream, missing, over)
    if as_json:
        click.echo(comparison_document(runs, missing, over), nl=False)
    if done.stop is not None:
        raise done.stop
    sys.exit(worst(done.exit_codes))


def _refuse_both(*, clocks: bool, models: bool) -> None:
    """Raises UsageError for options that exclude each other."""
    if clocks and models:
        raise UsageError("--clocks and --models compare different things; give one of the two")
    if clocks and is_given("clock"):
        raise UsageError("--clock: --clocks runs on both; leave one of the two out")
    if clocks and is_given("model"):
        raise UsageError("--model: --clocks compares clocks of packets; leave one of the two out")
    if models and is_given("model"):
        raise UsageError("--model: --models runs both; leave one of the two out")
    if models and is_given("seeds"):
        raise UsageError("--seeds: --models runs one seed; leave it out")
    if (clocks or models) and is_given("threads"):
        raise UsageError(
            "--threads: --clocks and --models choose the threads themselves; leave it out"
        )
    if (clocks or models) and mpi_ranks() > 1:
        raise UsageError("mpirun: --clocks and --models run in one process; leave mpirun out")
    if models and is_given("clock"):
        raise UsageError("--clock: --models runs packets on the virtual clock; leave it out")


def _refuse(specs: Sequence[Spec], *runners: Runner) -> None:
    """Raises UsageError, before anything runs, for a variant that one of the clocks cannot run."""
    for spec in specs:
        for variant in _variants(spec).values():
            for runner in runners:
                runner.refuse(variant)


def _variants(spec: Spec) -> dict[str, Spec]:
    return spec.variants() or {spec.name: spec}


def _compare_clocks(
    specs: Sequence[Spec], folder: Path, stream: TextIO, as_json: bool, *, quiet: bool
) -> NoReturn:
    """Runs each spec on both clocks, and compares them. `specs`: one spec with several seeds."""
    _refuse(specs, runner_on(REAL.name), runner_on(VIRTUAL.name))
    runs: dict[str, list[BothClocks]] = {}
    for spec in specs:
        for name, variant in _variants(spec).items():
            place = Path(name, f"seed-{spec.seed}") if len(specs) > 1 else Path(name)
            runs.setdefault(name, []).append(_on_both(name, variant, folder, place, quiet=quiet))
    compared = [Seeds(name, both) for name, both in runs.items()]
    document = to_json(clocks_document(compared))
    print_clocks(compared, write_clocks(document, folder), stream)
    if as_json:
        click.echo(document, nl=False)
    sys.exit(exit_code([both.real.summary for seeds in compared for both in seeds.runs], []))


def _compare_models(
    spec: Spec, folder: Path, stream: TextIO, as_json: bool, *, quiet: bool
) -> NoReturn:
    """Runs each variant by both models, and compares them."""
    runners = {model: runner_of(model, VIRTUAL.name) for model in (PACKETS.name, FLOW.name)}
    _refuse([spec], *runners.values())
    compared = []
    for name, variant in _variants(spec).items():
        runs = []
        for model, runner in runners.items():
            out, title = folder / model / name, f"{name}, {model}"
            facts = RunFacts(title, *record(title, variant, runner, out, quiet=quiet))
            write_run(facts, out)
            runs.append(facts)
        compared.append(BothModels(name, *runs))
    document = to_json(models_document(compared))
    print_models(compared, write_models(spec.name, compared, document, folder), stream)
    if as_json:
        click.echo(document, nl=False)
    of_packets = [both.packets for both in compared]
    checks = [check for run in of_packets for check in run.checks]
    sys.exit(exit_code([run.summary for run in of_packets], checks))


def _on_both(name: str, spec: Spec, folder: Path, place: Path, *, quiet: bool) -> BothClocks:
    """Runs a spec on both clocks. Writes each run when it is over, so that an interrupted series
    keeps the finished ones."""

    def on(clock: Clock) -> RunFacts:
        out = folder / clock.name / place
        facts = RunFacts(name, *record(name, spec, runner_on(clock.name), out, quiet=quiet))
        write_run(facts, out)
        return facts

    return BothClocks(on(REAL), on(VIRTUAL))


@dataclass
class _Done:
    """The runs of a comparison that are over."""

    first: list[RunFacts] = field(default_factory=list)
    """Those of the first seed."""
    by_variant: dict[str, dict[int, SeedRun]] = field(default_factory=dict)
    """Variant -> seed -> what is kept of its run."""
    exit_codes: list[ExitCode] = field(default_factory=list)
    stop: EmuError | KeyboardInterrupt | None = None
    """What ended the comparison before its last run."""

    def add(self, name: str, seed: int, run: RunFacts) -> None:
        if name not in self.by_variant:
            self.first.append(run)
        self.by_variant.setdefault(name, {})[seed] = SeedRun.of(run)
        self.exit_codes.append(exit_code([run.summary], run.checks))

    @property
    def over_seeds(self) -> OverSeeds:
        variants = [Variant(name, runs) for name, runs in self.by_variant.items()]
        return OverSeeds(variants, list(dict.fromkeys(s for v in variants for s in v.runs)))


def _seeds(spec: Spec, count: int) -> list[int]:
    """The seeds of --seeds: the spec's, and those after it."""
    return [spec.seed + further for further in range(count)]


def _run_all(
    variants: Mapping[str, Spec], seeds: Sequence[int], runner: Runner, folder: Path, *, quiet: bool
) -> _Done:
    """Runs all variants with all seeds, and writes each run when it is over. Of several seeds, a
    variant's own seed is the first, and the others follow it."""
    done = _Done()
    try:
        with sigterm_interrupts():
            for seed in seeds:
                for name, variant in variants.items():
                    spec = variant.with_completion
                    out, title = folder / name, name
                    if len(seeds) > 1:
                        own = variant.seed + seed - seeds[0]
                        spec = spec.model_copy(update={"seed": own})
                        out, title = out / f"seed-{own}", f"{name}, seed {own}"
                    facts = RunFacts(name, *record(title, spec, runner, out, quiet=quiet))
                    write_run(facts, out)
                    done.add(name, seed, facts)
    except (EmuError, KeyboardInterrupt) as stop:
        done.stop = stop
    return done
