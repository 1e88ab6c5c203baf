"""`emu convergence SPEC`: how long traffic is lost when links and switches fail and come back."""

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
    settings_option,
    spec_argument,
    workers_option,
)
from emu.cli.stopping import sigterm_interrupts
from emu.report.summary import to_json
from emu.report.text import print_tables
from emu.spec.model import load_spec
from emu.sweeps.needs import need_packages

if TYPE_CHECKING:
    from emu.convergence.measure import Comparison


@click.command("convergence")
@spec_argument
@click.option(
    "--planes",
    metavar="NAMES",
    help="Control planes, separated by commas: static, adaptive, bgp, bgp-fast, bgp-bfd, opensm, "
    "opensm-adaptive. [default: all]",
)
@click.option(
    "--events",
    metavar="NAMES",
    help="Events, separated by commas: link-down, link-silent, switch-down, link-up. "
    "[default: all]",
)
@click.option(
    "--repetitions",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="Repetitions of each event, each at another cable or switch. From 20 on, the 99th "
    "percentile replaces the range.",
)
@click.option(
    "--mistakes",
    is_flag=True,
    help="Also measure common mistakes of operators under bgp and opensm: what they cost as they "
    "are, and when a link then fails.",
)
@settings_option
@workers_option
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; runs that are in it are not done again. "
    "[default: out/<name of the spec>-convergence]",
)
@quiet_option
@json_option
def command(
    path: Path,
    planes: str | None,
    events: str | None,
    repetitions: int,
    mistakes: bool,
    settings: tuple[str, ...],
    workers: int | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure how long traffic is lost when links and switches fail and come back, under each
    control plane of both fabrics.

    SPEC gives the topology and its settings; probes replace its traffic (RFC 7747). The real FRR
    and the real OpenSM answer each event; runs are on the virtual clock.
    """
    need_packages("convergence needs")
    from emu.convergence.measure import run_convergence
    from emu.convergence.request import ConvergenceRequest, setup_of

    request = ConvergenceRequest(
        load_spec(path, settings),
        planes=names_of(planes),
        events=names_of(events),
        repetitions=repetitions,
        mistakes=mistakes,
        workers=workers,
    )
    setup = setup_of(request)
    folder = out or Path("out") / f"{setup.name}-convergence"
    with sigterm_interrupts():
        comparison = run_convergence(
            setup, folder, stream=None if quiet else sys.stderr, on_note=print_note
        )
    _print(comparison, as_json=as_json)


def _print(comparison: Comparison, *, as_json: bool) -> None:
    from emu.convergence.tables import sentences, terminal_tables
    from emu.convergence.to_document import document

    print_tables(
        f"{comparison.setup.name}: convergence",
        sentences(comparison),
        terminal_tables(comparison),
        comparison.files,
        sys.stderr if as_json else sys.stdout,
    )
    if as_json:
        click.echo(to_json(document(comparison)), nl=False)
