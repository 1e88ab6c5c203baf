"""`emu results FOLDER`: every result in a folder, and the page that lists them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from emu.cli.options import seeds_option, settings_option
from emu.cli.record import record
from emu.errors import UsageError
from emu.report.facts import RunFacts
from emu.report.reruns import TIMES, Occasion, occasions
from emu.report.results import Result, write_results
from emu.report.text import print_checks, print_reruns
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
@seeds_option
@click.option(
    "--hosts",
    "sizes",
    type=click.Choice(list(TIMES)),
    multiple=True,
    help="Run with half or twice as many hosts (beside the first) too, where a spec says how.",
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
    folder: Path,
    clocks: tuple[str, ...],
    seeds: int,
    sizes: tuple[str, ...],
    page: Path | None,
    out: Path,
    settings: tuple[str, ...],
) -> None:
    """Run every spec in FOLDER that has an `about:` section, and judge it by its checks.

    Each is run as it stands, where it has checks, and in the variants of its
    `compare:` section. Exits like `emu run`: 0 when all checks hold.
    """
    trials = [
        Trial(path, occasion, load_spec(path, (*settings, *occasion.settings)))
        for path in sorted(folder.glob("*.emu.yml"))
        for occasion in occasions(load_spec(path, settings), seeds, sizes)
    ]
    results = [(trial, trial.run(clocks, out)) for trial in trials if trial.spec.about]
    if not results:
        raise UsageError(f"{folder}: no spec there has an `about:` section")
    runs = [run for _, result in results for own in result.runs.values() for run in own]
    _print(results, runs)
    if page is not None:
        as_they_stand = [result for trial, result in results if not trial.occasion.settings]
        write_results(as_they_stand, page, shlex.join(["emu", *sys.argv[1:]]))
    checks = [check for run in runs for check in run.checks]
    sys.exit(exit_code([run.summary for run in runs], checks))


@dataclass(frozen=True)
class Trial:
    """A spec with the settings of one occasion."""

    path: Path
    occasion: Occasion
    spec: Spec

    def run(self, clocks: Sequence[str], out: Path) -> Result:
        assert self.spec.about is not None
        itself = {self.spec.name: self.spec} if self.spec.verify or not self.spec.compare else {}
        variants = itself | self.spec.variants()
        runs = {
            clock: [self._run_one(*each, clock, out) for each in variants.items()]
            for clock in clocks
        }
        return Result(self.spec.about, self.path, runs)

    def _run_one(self, name: str, spec: Spec, clock: str, out: Path) -> RunFacts:
        if clock == "real":  # where packets have all their bytes
            spec = spec.model_copy(update={"payload": "real"})
        folder = out / self.spec.name / clock / self.occasion.call(name)
        facts = RunFacts(self.occasion.call(name), *record(name, spec, clock, folder))
        write_run(facts, folder)
        return facts


def _print(results: Sequence[tuple[Trial, Result]], runs: Sequence[RunFacts]) -> None:
    print_checks(runs, sys.stdout)
    if len({trial.occasion.name for trial, _ in results}) > 1:
        print_reruns(_by_occasion(results), sys.stdout)


def _by_occasion(
    results: Sequence[tuple[Trial, Result]],
) -> dict[str, dict[str, list[RunFacts]]]:
    table: dict[str, dict[str, list[RunFacts]]] = {}
    for trial, result in results:
        runs = [run for own in result.runs.values() for run in own]
        table.setdefault(result.about.id, {})[trial.occasion.name] = runs
    return table
