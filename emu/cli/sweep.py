"""`emu sweep SPEC`: runs a spec at many points, with several seeds each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from emu.cli.notes import print_note
from emu.cli.options import (
    json_option,
    model_option,
    names_of,
    quiet_option,
    scheduler_option,
    seeds_option,
    settings_option,
    spec_argument,
    workers_option,
)
from emu.cli.reading import Reading, all_read
from emu.cli.stopping import sigterm_interrupts
from emu.errors import ExitCode
from emu.report.summary import to_json
from emu.report.text import print_tables
from emu.spec.model import load_spec
from emu.sweeps.needs import need_packages
from emu.words import listed

if TYPE_CHECKING:
    from emu.sweeps.sweep import Finished
    from emu.sweeps.values import Axis

_ROWS = 24
"""The most rows of a table in the terminal."""


@click.command("sweep")
@spec_argument
@click.option(
    "--vary",
    "vary",
    multiple=True,
    metavar="KEY=VALUES",
    help="A key of the spec with its values: 20KB,50KB, or a range 20KB..400KB/5 with a number of "
    "values (with --random without one). May be repeated; every combination is a point.",
)
@click.option(
    "--variants",
    metavar="NAMES",
    help="Variants of SPEC's `compare:`, separated by commas, or all. [default: SPEC itself]",
)
@seeds_option
@click.option(
    "--random",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="N random points (a Latin hypercube) instead of every combination.",
)
@click.option(
    "--points",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.csv",
    help="Take the points from a file: keys in its first line, values in the others.",
)
@settings_option
@model_option
@click.option(
    "--tables",
    metavar="NAMES",
    help="Further tables of each run: flows, ports, or both with a comma between them.",
)
@click.option(
    "--results",
    metavar="NAMES",
    help="The columns of figures to show, separated by commas; the first two have a Pareto front. "
    "[default: the most telling ones]",
)
@workers_option
@scheduler_option
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; runs that are in it are not done again. "
    "[default: out/<name of the spec>-sweep]",
)
@quiet_option
@json_option
def command(
    path: Path,
    vary: tuple[str, ...],
    variants: str | None,
    seeds: int,
    random: int | None,
    points: Path | None,
    settings: tuple[str, ...],
    model: str,
    tables: str | None,
    results: str | None,
    workers: int | None,
    scheduler: str | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run SPEC at many points, and show how the results change.

    Runs are on the virtual clock with one thread each, as many at once as there are cores, or on a
    Dask cluster. A sweep that was stopped goes on when it is started again.

    Exits with 4 if a run failed. A failed check of the spec is a figure (`checks_failed`).
    """
    need_packages()
    from emu.sweeps.points import in_file
    from emu.sweeps.request import Request, plan_of
    from emu.sweeps.sweep import run_sweep

    reading = Reading()
    spec = reading.of(lambda: load_spec(path, settings))
    axes = reading.of(lambda: _axes(vary))
    rows = reading.of(lambda: None if points is None else in_file(points))
    reading.end()
    request = Request(
        spec,
        axes=axes,
        points=rows,
        random=random,
        variants=names_of(variants),
        seeds=seeds,
        model=model,
        tables=names_of(tables),
        workers=workers,
        scheduler=scheduler,
    )
    made = plan_of(request)
    with sigterm_interrupts():
        finished = run_sweep(
            made,
            out or Path("out") / f"{made.name}-sweep",
            workers=workers,
            scheduler=scheduler,
            results=names_of(results),
            stream=None if quiet else sys.stderr,
            on_note=print_note,
        )
    _print(finished, as_json=as_json)
    if finished.stop is not None:
        raise finished.stop
    sys.exit(ExitCode.FAILED if len(finished.view.failed) else ExitCode.OK)


def _axes(texts: tuple[str, ...]) -> list[Axis]:
    """The axes of all --vary. Raises UsageError with the mistakes of all."""
    from emu.sweeps.values import axis_of

    return all_read(axis_of, texts)


def _print(finished: Finished, *, as_json: bool) -> None:
    from emu.sweeps.page import failed_table, means_table, sentences
    from emu.sweeps.to_document import document

    view = finished.view
    varied = [*(["variant"] if view.made.has_variants else []), *(c.key for c in view.made.columns)]
    print_tables(
        f"{view.made.name}: sweep over {listed([*varied, 'seeds'])}",
        sentences(view),
        (means_table(view, _ROWS), failed_table(view, _ROWS)),
        finished.files,
        sys.stderr if as_json else sys.stdout,
    )
    if as_json:
        rows = json.loads(view.rows.to_json(orient="records"))
        click.echo(to_json({**document(view), "rows": rows}), nl=False)
