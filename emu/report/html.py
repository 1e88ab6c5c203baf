"""The report page: one HTML file with everything in it, to read offline or send by mail.

It has no scripts, no fonts and no external addresses: style and pictures are inline. Names come
from users' files, so the template escapes everything but the pictures, whose text `figure`
escapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from emu.report.both_models import BothModels, models_table
from emu.report.charts import charts
from emu.report.checks_table import checks_table
from emu.report.comparison_tables import comparison_table, completion_table
from emu.report.counters_view import CountersView, counters_view
from emu.report.diagnosis import diagnoses
from emu.report.fct_table import fct_table
from emu.report.findings import findings
from emu.report.inference_table import inference_table
from emu.report.ios_table import ios_table
from emu.report.palette import COLOURS, LOAD
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
from emu.report.picture import Picture, picture
from emu.report.run_tables import (
    deadlocks_table,
    faults_table,
    flows_table,
    jobs_table,
    latency_table,
    ports_table,
    sweeps_table,
    totals_table,
)
from emu.report.run_view import RunFacts
from emu.report.seeds import OverSeeds, seeds_tables
from emu.report.senders import limited_by_senders
from emu.report.steps_table import steps_table
from emu.report.table import Table
from emu.report.templating import environment
from emu.report.uplinks import uneven_ports

MOST_ROWS = 100
"""The most rows of a table of flows or ports. The summary has them all."""


@dataclass(frozen=True)
class Badge:
    """A verdict in a few words at the top of a page."""

    text: str
    tone: str


@dataclass(frozen=True)
class RunView:
    """One run as the template shows it."""

    name: str
    conditions: str
    fidelity: str
    conclusive: bool
    reasons: tuple[str, ...]
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    diagnoses: tuple[str, ...]
    topology: Picture | None
    tables: tuple[Table, ...]
    captures: Mapping[str, Path]
    notes: tuple[str, ...]
    counters: tuple[CountersView, ...]


def run_page(run: RunFacts) -> str:
    """The page of one run."""
    return _render(run.name, [run], tables=(), sentences=())


def comparison_page(
    title: str,
    runs: Sequence[RunFacts],
    missing: Sequence[str] = (),
    over: OverSeeds | None = None,
) -> str:
    """The page of several runs, side by side. `missing`: variants without a result. `over`: the
    variants over several seeds; what one seed shows may be chance, so there are no findings then.
    """
    return _render(
        title,
        runs,
        tables=(comparison_table(runs), completion_table(runs)),
        sentences=[*not_run(missing), *(findings(runs) if over is None else ())],
        over_seeds=() if over is None else tuple(seeds_tables(over)),
    )


def models_page(title: str, specs: Sequence[BothModels]) -> str:
    """The page of specs that were run by both models."""
    runs = [run for both in specs for run in (both.packets, both.flow)]
    tables = (models_table(specs), completion_table(runs))
    return _render(title, runs, tables=tables, sentences=())


def _render(
    title: str,
    runs: Sequence[RunFacts],
    *,
    tables: Sequence[Table],
    sentences: Sequence[str],
    over_seeds: Sequence[Table] = (),
) -> str:
    views = [_view(run) for run in runs]
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            badges=_badges(runs),
            diagnosed=any(view.diagnoses for view in views),
            runs=views,
            honest=[view for view in views if view.conclusive],
            drawn=[view for view in views if view.conclusive and view.topology],
            tables=tables,
            over_seeds=over_seeds,
            checks=checks_table(runs),
            sentences=sentences,
            charts=charts(runs),
            colours=COLOURS,
            load=LOAD,
            not_known=not_known(runs),
            not_known_title=NOT_KNOWN_TITLE,
            inconclusive=INCONCLUSIVE,
            remedy=REMEDY,
        )
    )


def _badges(runs: Sequence[RunFacts]) -> list[Badge]:
    """The badges of a page: diagnoses, then unfinished runs, then the verdict of the checks."""
    found = sum(len(diagnoses(run)) for run in runs)
    unfinished = sum(bool(run.unfinished) for run in runs)
    badges = []
    if found:
        badges.append(Badge(f"{found} diagnosis" if found == 1 else f"{found} diagnoses", "bad"))
    if unfinished:
        of = f"{unfinished} of {len(runs)} runs " if len(runs) > 1 else ""
        badges.append(Badge(f"{of}not finished", "bad"))
    return [*badges, _verdict(runs)]


def _verdict(runs: Sequence[RunFacts]) -> Badge:
    results = [result for run in runs for result in run.checks]
    failed = sum(result.passed is False for result in results)
    if not all(run.conclusive for run in runs):
        return Badge("inconclusive", "bad")
    if failed:
        return Badge(f"{failed} of {len(results)} checks failed", "bad")
    if not results:
        return Badge("no checks", "faint")
    judged = sum(result.passed is not None for result in results)
    if judged < len(results):
        left = f", {len(results) - judged} not judged"
        return Badge(
            f"{judged} of {len(results)} checks passed{left}", "good" if judged else "faint"
        )
    return Badge(f"{len(results)} checks passed" if len(results) > 1 else "check passed", "good")


def _view(run: RunFacts) -> RunView:
    return RunView(
        name=run.name,
        conditions=conditions(run),
        fidelity=fidelity(run),
        conclusive=run.conclusive,
        reasons=run.recording.fidelity.reasons,
        sentences=(
            offered_and_finished(run),
            against_the_bound(run) if run.conclusive else "",
            processors(run),
            *limited_by_senders(run),
            *uneven_ports(run),
        ),
        warnings=run.recording.warnings,
        diagnoses=tuple(diagnosis.in_words() for diagnosis in diagnoses(run)),
        topology=picture(run),
        tables=(
            flows_table(run, MOST_ROWS),
            latency_table(run),
            ios_table(run),
            inference_table(run),
            fct_table(run),
            jobs_table(run),
            steps_table(run),
            faults_table(run),
            sweeps_table(run),
            deadlocks_table(run),
            *(_measured_tables(run) if run.conclusive else ()),
        ),
        captures=run.recording.captures,
        notes=run.recording.notes,
        counters=(
            counters_view("Counters of the ports", run.summary["ports"]),
            counters_view("Counters of the hosts", run.summary["hosts"]),
        ),
    )


def _measured_tables(run: RunFacts) -> tuple[Table, ...]:
    return totals_table(run), ports_table(run, MOST_ROWS)
