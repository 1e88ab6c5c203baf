"""`emu sensitivity SPEC`: what each setting, mistake and failure costs on a fabric."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from emu.cli.notes import print_note
from emu.cli.options import (
    json_option,
    names_of,
    quiet_option,
    scheduler_option,
    settings_option,
    spec_argument,
    workers_option,
)
from emu.cli.stopping import sigterm_interrupts
from emu.errors import ExitCode
from emu.report.summary import to_json
from emu.report.text import print_tables
from emu.spec.model import load_spec
from emu.sweeps.needs import need_packages

if TYPE_CHECKING:
    from emu.sensitivities.measure import Measured


@click.command("sensitivity")
@spec_argument
@click.option(
    "--variants",
    metavar="NAMES",
    help="Variants of SPEC's `compare:`, separated by commas, or all. [default: SPEC itself]",
)
@click.option(
    "--fabrics",
    metavar="NAMES",
    help="SPEC on these fabrics, roce, ib, or both with a comma between them, instead of variants.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Seeds of each change: the spec's seed and those after it. Differences take 5.",
)
@settings_option
@workers_option
@scheduler_option
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; runs that are in it are not done again. "
    "[default: out/<name of the spec>-sensitivity]",
)
@quiet_option
@json_option
def command(
    path: Path,
    variants: str | None,
    fabrics: str | None,
    seeds: int,
    settings: tuple[str, ...],
    workers: int | None,
    scheduler: str | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure what each change of SPEC's fabric costs, one change at a time.

    Changes are every tuned setting halved and doubled, the common mistakes (a wrong DSCP map, small
    headroom, no ECN, ignored CNPs, a wrong SL, a slow receiver), and failed links. Runs are on the
    virtual clock. A measurement that was stopped goes on when it is started again.

    Exits with 4 if a run failed.
    """
    need_packages()
    from emu.sensitivities.measure import run_sensitivity
    from emu.sensitivities.request import SensitivityRequest, setup_of

    request = SensitivityRequest(
        load_spec(path, settings),
        variants=names_of(variants),
        fabrics=names_of(fabrics),
        seeds=seeds,
        workers=workers,
        scheduler=scheduler,
    )
    setup = setup_of(request)
    folder = out or Path("out") / f"{setup.name}-sensitivity"
    with sigterm_interrupts():
        measured = run_sensitivity(
            setup,
            folder,
            pages=folder,
            stream=None if quiet else sys.stderr,
            on_note=print_note,
        )
    _print(measured, as_json=as_json)
    if measured.stop is not None:
        raise measured.stop
    sys.exit(ExitCode.FAILED if measured.failed else ExitCode.OK)


def _print(measured: Measured, *, as_json: bool) -> None:
    from emu.sensitivities.tables import sentences, terminal_tables
    from emu.sensitivities.to_document import document

    print_tables(
        f"{measured.setup.name}: sensitivity",
        sentences(measured),
        terminal_tables(measured),
        measured.files,
        sys.stderr if as_json else sys.stdout,
    )
    if as_json:
        click.echo(to_json(document(measured)), nl=False)
