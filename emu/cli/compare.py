"""`emu compare SPEC`: the same workload over several fabrics."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from emu.cli.options import clock_option, json_option, out_option, settings_option, spec_argument
from emu.cli.record import record
from emu.errors import UsageError
from emu.report.facts import RunFacts
from emu.report.summary import compare, to_json
from emu.report.text import print_comparison
from emu.report.verdict import exit_code
from emu.report.write import write_comparison
from emu.spec.model import load_spec


@click.command("compare")
@spec_argument
@settings_option
@clock_option
@out_option
@json_option
def command(
    path: Path, settings: tuple[str, ...], clock: str, out: Path | None, as_json: bool
) -> None:
    """Run every variant in SPEC's `compare:` section and put them side by side."""
    spec = load_spec(path, settings)
    if not spec.compare:
        raise UsageError(f"{path}: has no `compare:` section; name the variants to run there")
    folder = out or Path("out") / spec.name
    runs = [
        RunFacts(name, *record(name, variant, clock, folder / name))
        for name, variant in spec.variants().items()
    ]
    artifacts = write_comparison(spec.name, runs, folder)
    print_comparison(runs, artifacts, sys.stderr if as_json else sys.stdout)
    if as_json:
        click.echo(to_json(compare({run.name: run.recording for run in runs})))
    summaries = [run.summary for run in runs]
    sys.exit(exit_code(summaries, [check for run in runs for check in run.checks]))
