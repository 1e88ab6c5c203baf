"""`emu compare SPEC`: the same workload over several fabrics."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

import click
from click.core import ParameterSource

from emu.cli.options import (
    clock_option,
    json_option,
    out_option,
    seeds_option,
    settings_option,
    spec_argument,
)
from emu.cli.record import record
from emu.errors import UsageError
from emu.report.clocks import BothClocks, Seeds, clocks_document
from emu.report.facts import RunFacts
from emu.report.reruns import with_seeds
from emu.report.summary import compare, to_json
from emu.report.text import print_clocks, print_comparison
from emu.report.verdict import exit_code
from emu.report.write import write_comparison, write_run
from emu.shim.virtual import refuse_tcp
from emu.spec.model import Spec, load_spec


@click.command("compare")
@spec_argument
@settings_option
@clock_option
@click.option("--clocks", is_flag=True, help="Put the two clocks side by side instead.")
@seeds_option
@out_option
@json_option
def command(
    path: Path,
    settings: tuple[str, ...],
    clock: str,
    clocks: bool,
    seeds: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run every variant in SPEC's `compare:` section and put them side by side.

    With --clocks, run each of them (or SPEC itself, where it has none) on the
    real and on the virtual clock: the difference is the emulator's own error.
    Where congestion control makes a run chaotic, --clocks compares several --seeds.
    """
    source = click.get_current_context().get_parameter_source("clock")
    if clocks and source is ParameterSource.COMMANDLINE:
        raise UsageError(f"--clock {clock}: --clocks runs on both; leave one of them out")
    spec = load_spec(path, settings)
    folder = out or Path("out") / spec.name
    stream = sys.stderr if as_json else sys.stdout
    if clocks:
        reseeded = [
            load_spec(path, (*settings, *seed.settings)) for seed in with_seeds(spec, seeds)
        ]
        _compare_clocks(reseeded, folder, stream, as_json)
    if seeds > 1:
        raise UsageError("--seeds: only together with --clocks")
    if not spec.compare:
        raise UsageError(f"{path}: has no `compare:` section; name the variants to run there")
    if clock == "virtual":
        for variant in spec.variants().values():
            refuse_tcp(variant)
    runs = [_run(name, variant, clock, folder) for name, variant in spec.variants().items()]
    print_comparison(runs, write_comparison(spec.name, runs, folder), stream)
    if as_json:
        click.echo(to_json(compare({run.name: run.recording for run in runs})), nl=False)
    summaries = [run.summary for run in runs]
    sys.exit(exit_code(summaries, [check for run in runs for check in run.checks]))


def _compare_clocks(specs: Sequence[Spec], folder: Path, stream: TextIO, as_json: bool) -> NoReturn:
    """`specs`: the same one, with one seed after the other."""
    runs: dict[str, list[BothClocks]] = {}
    variants = [spec.variants() or {spec.name: spec} for spec in specs]
    for variant in variants[0].values():
        refuse_tcp(variant)
    for spec, own in zip(specs, variants, strict=True):
        into = folder / f"seed-{spec.seed}" if len(specs) > 1 else folder
        for name, variant in own.items():
            runs.setdefault(name, []).append(_on_both(name, variant, into))
    compared = [Seeds(name, both) for name, both in runs.items()]
    print_clocks(compared, stream)
    if as_json:
        click.echo(json.dumps(clocks_document(compared), indent=2))
    sys.exit(exit_code([both.real.summary for seeds in compared for both in seeds.runs], []))


def _on_both(name: str, spec: Spec, folder: Path) -> BothClocks:
    """Each run leaves what `emu run` does, in a folder of its clock."""
    both = []
    for clock in ("real", "virtual"):
        both.append(_run(name, spec, clock, folder / clock))
        write_run(both[-1], folder / clock / name)
    return BothClocks(*both)


def _run(name: str, spec: Spec, clock: str, folder: Path) -> RunFacts:
    return RunFacts(name, *record(name, spec, clock, folder / name))
