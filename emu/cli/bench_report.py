"""`emu bench-report SPEC`: a benchmark report after the IETF BMWG drafts for AI fabrics."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from emu.bmwg.run import run_bench, specs_of
from emu.bmwg.write import bench_document, print_bench, write_bench
from emu.cli.options import (
    auto_clock_option,
    json_option,
    quiet_option,
    seeds_option,
    settings_option,
    spec_argument,
    threads_option,
)
from emu.cli.runner import chosen_runner
from emu.cli.stopping import sigterm_interrupts
from emu.models import PACKETS
from emu.output_dir import refuse_unwritable
from emu.spec.model import load_spec


@click.command("bench-report")
@spec_argument
@settings_option
@auto_clock_option
@threads_option
@seeds_option
@click.option(
    "--interference",
    is_flag=True,
    help="Also run each entry of the spec's `traffic:` without the others, and compare.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the report and its runs.  [default: out/<name of the spec>-bench]",
)
@quiet_option
@json_option
def command(
    path: Path,
    settings: tuple[str, ...],
    clock: str,
    threads: int | None,
    seeds: int,
    interference: bool,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run SPEC and report the KPIs of the IETF BMWG drafts for AI fabrics.

    The tables are those of the drafts: primary and secondary KPIs, health of the fabric, latency,
    link failure, interference. A KPI that the workload does not define is listed with the reason.
    With --seeds, figures are means over as many iterations, with their coefficient of variation.
    Where SPEC takes links away (faults: link-down), it also runs without that.

    Reference targets of the drafts are marks beside figures. Exits as `emu run`: with 1 only if a
    check of SPEC fails.
    """
    spec = load_spec(path, settings)
    folder = out or Path("out") / f"{spec.name}-bench"
    refuse_unwritable(folder)
    specs = specs_of(spec, seeds, interference=interference)
    every = [one for own in specs for one in own.every]
    runner = chosen_runner(PACKETS.name, clock, threads, every, quiet=quiet)
    with sigterm_interrupts():
        bench = run_bench(specs, runner, folder, quiet=quiet)
    files = write_bench(bench, folder)
    print_bench(bench, files, sys.stderr if as_json else sys.stdout)
    if as_json:
        click.echo(bench_document(bench), nl=False)
    sys.exit(bench.exit_code)
