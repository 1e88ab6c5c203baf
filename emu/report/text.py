"""The text that `emu run` and `emu compare` print.

On a terminal, rich draws the tables. Anywhere else (a pipe, a log) they are
plain aligned columns without colours and rules, and nothing is cut off. Names
come from users' files, so no text is parsed as rich's markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from emu.report.both_models import BothModels, models_table
from emu.report.checks_table import checks_table
from emu.report.clocks import Seeds, clocks_table
from emu.report.comparison_tables import comparison_table
from emu.report.diagnosis import diagnoses
from emu.report.fct_table import fct_table
from emu.report.findings import findings
from emu.report.inference_table import inference_table
from emu.report.ios_table import ios_table
from emu.report.phrases import (
    INCONCLUSIVE,
    NOT_KNOWN_TITLE,
    REMEDY,
    against_the_bound,
    conditions,
    fidelity,
    not_known,
    not_run,
    offered_and_finished,
    processors,
)
from emu.report.reruns import reruns_table
from emu.report.run_tables import (
    deadlocks_table,
    faults_table,
    flows_table,
    jobs_table,
    latency_table,
    sweeps_table,
    totals_table,
)
from emu.report.run_view import RunFacts
from emu.report.seeds import OverSeeds, seeds_tables
from emu.report.senders import limited_by_senders
from emu.report.steps_table import steps_table
from emu.report.table import Cell, Table, Tone
from emu.report.uplinks import uneven_ports
from emu.words import listed

Artifacts = Mapping[str, Path]
"""Description of a file -> its path."""

FLOW_ROWS = 24
"""The most flows in the terminal's table. The summary and the page have more."""

_STYLES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.BAD: "bold red", Tone.FAINT: "dim"}
_LABEL_WIDTH, _FABRIC_WIDTH = 28, 12
"""Columns of the terminal that a comparison needs for its labels, and for each fabric."""
_UNLIMITED = 10_000
"""The width for output that is not a terminal, so that no line is wrapped."""


def print_run(run: RunFacts, artifacts: Artifacts, stream: TextIO) -> None:
    """Prints one run: first an alarm if it is inconclusive, then results, then the files."""
    out = _console(stream)
    _print_alarm(out, run)
    _say(out, f"{run.name}: {conditions(run)}", style="bold")
    _print_warnings(out, [run])
    _print_diagnoses(out, run)
    if run.conclusive:
        _say(out, fidelity(run))
    _say(out, processors(run))
    _say(out, offered_and_finished(run))
    _print_table(out, flows_table(run, FLOW_ROWS))
    _print_table(out, latency_table(run))
    _print_table(out, ios_table(run))
    _print_table(out, inference_table(run))
    _print_table(out, fct_table(run))
    _print_table(out, jobs_table(run))
    _print_table(out, steps_table(run))
    _print_table(out, faults_table(run))
    _print_table(out, sweeps_table(run))
    _print_table(out, deadlocks_table(run))
    if run.conclusive:
        _print_table(out, totals_table(run))
        _say(out, against_the_bound(run))
    for sentence in (*limited_by_senders(run), *uneven_ports(run)):
        _say(out, sentence)
    _print_table(out, checks_table([run]))
    _print_not_known(out, [run])
    _print_notes(out, [run])
    _print_artifacts(out, artifacts)


def print_comparison(
    runs: Sequence[RunFacts],
    artifacts: Artifacts,
    stream: TextIO,
    missing: Sequence[str] = (),
    over: OverSeeds | None = None,
) -> None:
    """Prints the same workload over several fabrics, side by side.

    `missing`: variants without a result. `over`: the variants over several seeds, the first of
    which is that of `runs`. What one seed shows may be chance, so there are no findings then.
    """
    out = _console(stream)
    for sentence in not_run(missing):
        _say(out, sentence, style="bold red")
    for run in runs:
        _print_alarm(out, run)
    for run in runs:
        _say(out, f"{run.name}: {conditions(run)}", style="bold")
    _print_warnings(out, runs)
    for run in runs:
        for diagnosis in diagnoses(run):
            _say(out, f"{run.name}: {diagnosis.in_short()}", style=_STYLES[Tone.BAD])
    for side_by_side in _blocks(runs, out.width):
        _print_table(out, comparison_table(side_by_side))
    if over is None:
        for sentence in findings(runs):
            _say(out, f"- {sentence}")
        _print_table(out, checks_table(runs))
    else:
        for table in seeds_tables(over):
            _print_table(out, table)
    _print_not_known(out, runs)
    _print_notes(out, runs)
    _print_artifacts(out, artifacts)


def print_checks(runs: Sequence[RunFacts], stream: TextIO) -> None:
    """Prints only the checks of each run."""
    out = _console(stream)
    for run in runs:
        _print_alarm(out, run)
    _print_table(out, checks_table(runs))


def print_reruns(results: Mapping[str, Mapping[str, Sequence[RunFacts]]], stream: TextIO) -> None:
    """Prints the results with other seeds and sizes. `results`: by id, by variation."""
    _print_table(_console(stream), reruns_table(results))


def print_clocks(specs: Sequence[Seeds], artifacts: Artifacts, stream: TextIO) -> None:
    """Prints the emulator's own error for each spec."""
    out = _console(stream)
    for seeds in specs:
        for both in seeds.runs:
            _print_alarm(out, both.real)
    for seeds in specs:
        _say(out, f"{seeds.name}: {conditions(seeds.runs[0].real)}", style="bold")
        _print_table(out, clocks_table(seeds))
    _print_artifacts(out, artifacts)


def print_models(specs: Sequence[BothModels], artifacts: Artifacts, stream: TextIO) -> None:
    """Prints both models of each spec side by side."""
    out = _console(stream)
    runs = [run for both in specs for run in (both.packets, both.flow)]
    for run in runs:
        _say(out, f"{run.name}: {conditions(run)}", style="bold")
    _print_warnings(out, runs)
    _print_table(out, models_table(specs))
    _print_table(out, checks_table(runs))
    _print_not_known(out, runs)
    _print_notes(out, runs)
    _print_artifacts(out, artifacts)


def print_tables(
    title: str,
    sentences: Iterable[str],
    tables: Iterable[Table],
    artifacts: Artifacts,
    stream: TextIO,
) -> None:
    """Prints sentences and tables of something else than a run."""
    out = _console(stream)
    _say(out, title, style="bold")
    for sentence in sentences:
        _say(out, sentence)
    for table in tables:
        _print_table(out, table)
    _print_artifacts(out, artifacts)


def _console(stream: TextIO) -> Console:
    return Console(
        file=stream,
        width=None if stream.isatty() else _UNLIMITED,
        markup=False,
        emoji=False,
        highlight=False,
    )


def _say(out: Console, sentence: str, style: str = "") -> None:
    if sentence:
        out.print(Text(sentence, style=style))


def _print_alarm(out: Console, run: RunFacts) -> None:
    """Prints why a run is inconclusive, if it is."""
    if run.conclusive:
        return
    _say(out, f"{run.name} is {INCONCLUSIVE}", style=_STYLES[Tone.BAD])
    for line in (fidelity(run), *run.recording.fidelity.reasons, REMEDY):
        _say(out, f"  {line}")


def _blocks(runs: Sequence[RunFacts], width: int) -> list[Sequence[RunFacts]]:
    """Groups of runs that fit side by side into this width."""
    fit = max(1, (width - _LABEL_WIDTH) // _FABRIC_WIDTH)
    return [runs[first : first + fit] for first in range(0, len(runs), fit)]


def _print_table(out: Console, table: Table) -> None:
    if not table.rows:
        return
    out.print()
    _say(out, table.title, style="bold")
    out.print(_drawn(table) if out.is_terminal else _aligned(table))
    _say(out, table.note, style=_STYLES[Tone.FAINT])


def _drawn(table: Table) -> RichTable:
    drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in table.columns:
        drawn.add_column(Text(column.name), justify="right" if column.numeric else "left")
    for row in table.rows:
        drawn.add_row(*(Text(cell.text, style=_STYLES[cell.tone]) for cell in row))
    return drawn


def _aligned(table: Table) -> Text:
    lines = [tuple(Cell(column.name) for column in table.columns), *table.rows]
    widths = [max(len(cell.text) for cell in column) for column in zip(*lines, strict=True)]
    return Text("\n".join(_aligned_line(table, line, widths) for line in lines))


def _aligned_line(table: Table, line: Sequence[Cell], widths: Sequence[int]) -> str:
    cells = (
        cell.text.rjust(width) if column.numeric else cell.text.ljust(width)
        for column, cell, width in zip(table.columns, line, widths, strict=True)
    )
    return "  ".join(cells).rstrip()


def _print_diagnoses(out: Console, run: RunFacts) -> None:
    """Prints what is wrong and what cures it."""
    for diagnosis in diagnoses(run):
        _say(out, diagnosis.in_words(), style=_STYLES[Tone.BAD])
        out.print()


def _print_notes(out: Console, runs: Sequence[RunFacts]) -> None:
    """Prints each note once, with the names of its runs."""
    names: dict[str, list[str]] = {}
    for run in runs:
        for note in run.recording.notes:
            names.setdefault(note, []).append(run.name)
    for note, own in names.items():
        _say(out, f"Note on {listed(own)}: {note}")


def _print_warnings(out: Console, runs: Sequence[RunFacts]) -> None:
    """Prints where the models of these runs are wrong about them."""
    for run in runs:
        for warning in run.recording.warnings:
            _say(out, f"{run.name}: {warning}", style=_STYLES[Tone.BAD])


def _print_not_known(out: Console, runs: Sequence[RunFacts]) -> None:
    """Prints what the models of these runs do not know."""
    sentences = not_known(runs)
    if sentences:
        out.print()
        _say(out, f"{NOT_KNOWN_TITLE}", style="bold")
    for sentence in sentences:
        _say(out, f"- {sentence}")


def _print_artifacts(out: Console, artifacts: Artifacts) -> None:
    out.print()
    width = max((len(what) for what in artifacts), default=0)
    for what, path in artifacts.items():
        out.print(Text(f"{what.ljust(width)}  {path}"), soft_wrap=True)
