"""`emu results FOLDER`: runs and judges all specs of a folder, and writes a page about them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from emu.cli.notes import print_note
from emu.cli.options import (
    AUTO_HELP,
    quiet_option,
    seeds_option,
    settings_option,
    threads_option,
)
from emu.cli.stopping import sigterm_interrupts
from emu.clocks import AUTO, CLOCKS, EXACT, REAL, VIRTUAL, Clock
from emu.errors import EmuError, UsageError
from emu.output_dir import refuse_unwritable, write_text, writing_into
from emu.report.reruns import TIMES, Variation, name_of, variations
from emu.report.results import Result, write_results
from emu.report.run_view import RunFacts
from emu.report.store import load_recording
from emu.report.text import print_checks, print_reruns
from emu.report.verdict import exit_code
from emu.report.write import write_run
from emu.runtime import Runner, runner_on
from emu.runtime.auto_clock import ClockChoice
from emu.runtime.choose import choose_clock, on_threads
from emu.runtime.record import record
from emu.spec.about import About
from emu.spec.model import Spec, load_spec

_SPEC_FILE = "spec.json"


@click.command("results")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--clock",
    "clocks",
    type=click.Choice([AUTO, *CLOCKS]),
    multiple=True,
    default=(AUTO,),
    show_default=True,
    help=f"Run on this clock; several may be given. {AUTO_HELP}",
)
@threads_option
@seeds_option
@click.option(
    "--hosts",
    "sizes",
    type=click.Choice(list(TIMES)),
    multiple=True,
    help="Also run with half or twice as many hosts, if the spec defines how.",
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
    help="Folder for the results of each run.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Keep conclusive runs of the same specs that are in --out already.",
)
@quiet_option
@settings_option
def command(
    folder: Path,
    clocks: tuple[str, ...],
    threads: int | None,
    seeds: int,
    sizes: tuple[str, ...],
    page: Path | None,
    out: Path,
    resume: bool,
    quiet: bool,
    settings: tuple[str, ...],
) -> None:
    """Run every spec in FOLDER that has an `about:` section, and judge it by its checks.

    Each spec is run as it is, if it has checks, and in the variants of its
    `compare:` section. Exits as `emu run` does: with 0 if all checks hold.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: is not a folder; name a folder with specs")
    trials = [
        Experiment(path, variation, load_spec(path, (*settings, *variation.settings)))
        for path in sorted(folder.glob("*.emu.yml"))
        for variation in variations(load_spec(path, settings), seeds, sizes)
    ]
    if page is not None:
        refuse_unwritable(page.parent, "--page")
    keeper = RunCache(out, resume, quiet, threads)
    chosen = _chosen(trials, folder, clocks, threads)
    if not quiet:
        _print_choices(chosen)
    present = {trial.variation.name for trial, _ in chosen}
    for size in sizes:
        if name_of(size) not in present:
            raise UsageError(
                f"--hosts {size}: no spec in {folder} says which key its hosts go by and has so "
                "many; name it in about.hosts, or leave --hosts out"
            )
    results, stop = _run_all(chosen, keeper)
    runs = [run for _, result in results for own in result.runs.values() for run in own]
    _print(results, runs)
    if stop is not None:
        print_note(
            f"stopped: {len(chosen) - len(results)} of {len(chosen)} results are not complete, "
            "so no page is written; --resume goes on with the runs that are in --out"
        )
        raise stop
    if sizes:
        _print_single_sizes(result.about for _, result in results)
    if page is not None:
        unchanged = [result for trial, result in results if not trial.variation.settings]
        write_results(unchanged, page, shlex.join(["emu", *sys.argv[1:]]))
    checks = [check for run in runs for check in run.checks]
    sys.exit(exit_code([run.summary for run in runs], checks))


def _chosen(
    trials: Sequence[Experiment], folder: Path, clocks: Sequence[str], threads: int | None
) -> list[tuple[Experiment, list[ClockChoice]]]:
    """The experiments that are meant for these clocks, with their clocks. Raises UsageError if
    there are none, or none that `threads` could run."""
    chosen = [(trial, own) for trial in trials if (own := trial.on(clocks, threads))]
    if not chosen:
        named = [name for name in dict.fromkeys(clocks) if name != AUTO]
        meant = f" that is for the {' or the '.join(named)} clock" if named else ""
        raise UsageError(f"{folder}: no spec there has an `about:` section{meant}")
    if threads is not None and not any(one.clock is VIRTUAL for _, own in chosen for one in own):
        raise UsageError(
            f"--threads: no run of {folder} is on the virtual clock, the only one that runs on "
            "several threads; leave it out, or use --clock virtual"
        )
    return chosen


def _run_all(
    chosen: Sequence[tuple[Experiment, Sequence[ClockChoice]]], keeper: RunCache
) -> tuple[list[tuple[Experiment, Result]], EmuError | KeyboardInterrupt | None]:
    """The finished results, and the exception if a run failed or was stopped."""
    results: list[tuple[Experiment, Result]] = []
    try:
        with sigterm_interrupts():
            for trial, choices in chosen:
                results.append((trial, trial.run([own.clock for own in choices], keeper)))
    except (EmuError, KeyboardInterrupt) as stop:
        return results, stop
    return results, None


@dataclass(frozen=True)
class RunCache:
    """Runs specs and keeps the results, each in a folder of `out` together with its spec."""

    out: Path
    resume: bool
    quiet: bool
    threads: int | None = None
    """Of runs on the virtual clock; None for as many as pay for themselves."""

    def run(self, name: str, spec: Spec, clock: str, path: Path) -> RunFacts:
        """Runs a spec into the folder `path`. With `resume` a conclusive run there is kept."""
        folder = self.out / path
        kept = self._kept(name, spec, folder) if self.resume else None
        if kept is not None and kept.conclusive and not kept.recording.partial:
            return kept
        facts = RunFacts(name, *record(name, spec, self._runner(clock), folder, quiet=self.quiet))
        write_run(facts, folder)
        with writing_into(folder):
            write_text(folder / _SPEC_FILE, spec.to_json())
        return facts

    def _runner(self, clock: str) -> Runner:
        runner = runner_on(clock)
        return on_threads(runner, self.threads) if clock == VIRTUAL.name else runner

    def _kept(self, name: str, spec: Spec, folder: Path) -> RunFacts | None:
        file = folder / _SPEC_FILE
        if not file.is_file() or file.read_text(encoding="utf-8") != spec.to_json():
            return None
        return RunFacts(name, load_recording(folder), spec, spec.topology.build())


@dataclass(frozen=True)
class Experiment:
    """A spec with the settings of one variation."""

    path: Path
    variation: Variation
    spec: Spec

    def on(self, clocks: Iterable[str], threads: int | None) -> list[ClockChoice]:
        """The clocks among these that the spec is meant for. `threads`: those of --threads, which
        `auto` takes into account."""
        about = self.spec.about
        if about is None:
            return []
        asked = (
            self._auto(threads) if name == AUTO else ClockChoice(CLOCKS[name]) for name in clocks
        )
        meant = {choice.clock.name: choice for choice in asked if choice.clock.name in about.clocks}
        return [*meant.values()]

    def run(self, clocks: Sequence[Clock], keeper: RunCache) -> Result:
        assert self.spec.about is not None
        runs: dict[str, list[RunFacts]] = {
            clock.name: [
                keeper.run(name, spec, clock.name, Path(self.spec.name, clock.name, name))
                for name, spec in self._runs_on(clock).items()
            ]
            for clock in clocks
        }
        return Result(self.spec.about, self.path, runs)

    def _auto(self, threads: int | None) -> ClockChoice:
        assert self.spec.about is not None
        meant = self.spec.about.clocks
        if EXACT.name in meant:
            return choose_clock(threads, [*self._runs_on(EXACT).values()])
        only = VIRTUAL if VIRTUAL.name in meant else REAL
        return ClockChoice(only, f"about.clocks has no {EXACT.name}")

    def _runs_on(self, clock: Clock) -> dict[str, Spec]:
        """Name -> the spec of each run on this clock."""
        itself = {self.spec.name: self.spec} if self.spec.verify or not self.spec.compare else {}
        variants = itself | self.spec.variants()
        payload = {} if clock.elides_payload else {"payload": "real"}
        return {
            self.variation.call(name): variant.model_copy(update=payload)
            for name, variant in variants.items()
        }


def _print_choices(chosen: Sequence[tuple[Experiment, Sequence[ClockChoice]]]) -> None:
    """Prints the clocks of the runs, each with the specs that run on it."""
    specs: dict[str, list[str]] = {}
    for trial, choices in chosen:
        for choice in choices:
            specs.setdefault(str(choice), []).append(trial.variation.call(trial.spec.name))
    for text, names in specs.items():
        which = "all specs" if len(names) == len(chosen) else ", ".join(names)
        print_note(f"{text} ({which})")


def _print(results: Sequence[tuple[Experiment, Result]], runs: Sequence[RunFacts]) -> None:
    print_checks(runs, sys.stdout)
    if len({trial.variation.name for trial, _ in results}) > 1:
        print_reruns(_by_variation(results), sys.stdout)


def _print_single_sizes(abouts: Iterable[About]) -> None:
    """Prints why some results were not run with other numbers of hosts."""
    for identity, why in {about.id: about.one_size for about in abouts if about.one_size}.items():
        print(f"{identity} has one size: {why}")


def _by_variation(
    results: Sequence[tuple[Experiment, Result]],
) -> dict[str, dict[str, list[RunFacts]]]:
    table: dict[str, dict[str, list[RunFacts]]] = {}
    for trial, result in results:
        runs = [run for own in result.runs.values() for run in own]
        table.setdefault(result.about.id, {})[trial.variation.name] = runs
    return table
