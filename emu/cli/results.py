"""`emu results FOLDER`: every result in a folder, and the page that lists them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from emu.cli.options import settings_option
from emu.cli.record import record
from emu.errors import UsageError
from emu.report.facts import RunFacts
from emu.report.results import Result, write_results
from emu.report.text import print_checks
from emu.report.verdict import exit_code
from emu.report.write import write_run
from emu.spec.model import Spec, load_spec


@click.command("results")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--clock",
    "clocks",
    type=click.Choice(["real", "virtual"]),
    multiple=True,
    default=("virtual",),
    show_default=True,
    help="Run on this clock; both may be given.",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page in Markdown, with its pictures beside it.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/results"),
    show_default=True,
    help="Folder for what each run leaves.",
)
@settings_option
def command(
    folder: Path, clocks: tuple[str, ...], page: Path | None, out: Path, settings: tuple[str, ...]
) -> None:
    """Run every spec in FOLDER that has an `about:` section, and judge it by its checks.

    Each is run as it stands, where it has checks, and in the variants of its
    `compare:` section. Exits like `emu run`: 0 when all checks hold.
    """
    specs = {path: load_spec(path, settings) for path in sorted(folder.glob("*.emu.yml"))}
    results = [_run(path, spec, clocks, out) for path, spec in specs.items() if spec.about]
    if not results:
        raise UsageError(f"{folder}: no spec there has an `about:` section")
    runs = [run for result in results for own in result.runs.values() for run in own]
    print_checks(runs, sys.stdout)
    if page is not None:
        write_results(results, page, shlex.join(["emu", *sys.argv[1:]]))
    checks = [check for run in runs for check in run.checks]
    sys.exit(exit_code([run.summary for run in runs], checks))


def _run(path: Path, spec: Spec, clocks: tuple[str, ...], out: Path) -> Result:
    assert spec.about is not None
    itself = {spec.name: spec} if spec.verify or not spec.compare else {}
    variants = itself | spec.variants()
    runs = {
        clock: [_run_one(name, own, clock, out / spec.name) for name, own in variants.items()]
        for clock in clocks
    }
    return Result(spec.about, path, runs)


def _run_one(name: str, spec: Spec, clock: str, folder: Path) -> RunFacts:
    out = folder / clock / name
    facts = RunFacts(name, *record(name, spec, clock, out))
    write_run(facts, out)
    return facts
