"""`emu run SPEC`: runs a spec once."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from emu.cli.options import (
    auto_clock_option,
    json_option,
    model_option,
    out_option,
    quiet_option,
    settings_option,
    spec_argument,
    threads_option,
)
from emu.cli.ranks import assists, first_rank
from emu.cli.runner import chosen_runner
from emu.output_dir import refuse_unwritable_file, write_text, writing_into
from emu.report.junit import junit_xml
from emu.report.run_view import RunFacts
from emu.report.summary import to_json
from emu.report.text import print_run
from emu.report.verdict import exit_code
from emu.report.write import write_run
from emu.runtime.record import record
from emu.spec.model import load_spec


@click.command("run")
@spec_argument
@settings_option
@auto_clock_option
@model_option
@threads_option
@out_option
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the checks to this file as JUnit XML, for build servers.",
)
@quiet_option
@json_option
def command(
    path: Path,
    settings: tuple[str, ...],
    clock: str,
    model: str,
    threads: int | None,
    out: Path | None,
    junit: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run SPEC and report the results.

    Exits with 0 if all checks hold, 1 if one fails, 5 if the machine could not
    keep up, so that the numbers are not results.
    """
    if assists():
        return
    with first_rank():
        spec = load_spec(path, settings)
        folder = out or Path("out") / spec.name
        if junit:
            refuse_unwritable_file(junit, "--junit")
        runner = chosen_runner(model, clock, threads, [spec], quiet=quiet)
        facts = RunFacts(spec.name, *record(spec.name, spec, runner, folder, quiet=quiet))
    artifacts = write_run(facts, folder)
    if junit:
        with writing_into(junit.parent, "--junit"):
            write_text(junit, junit_xml(facts))
    print_run(facts, artifacts, sys.stderr if as_json else sys.stdout)
    if as_json:
        click.echo(to_json(facts.summary), nl=False)
    sys.exit(exit_code([facts.summary], facts.checks))
