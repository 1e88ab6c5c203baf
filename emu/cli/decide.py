"""`emu decide SPEC`: which fabric suits a cluster and its workload, and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from emu.cli.reading import Reading, all_read
from emu.cli.stopping import interrupts_keep_runs
from emu.cli.varied import varied
from emu.decisions.names import ALL, CHANGES, NONE, USUAL
from emu.errors import ExitCode, UsageError
from emu.report.summary import to_json
from emu.report.text import print_tables
from emu.spec.model import load_spec
from emu.sweeps.needs import need_packages

if TYPE_CHECKING:
    from emu.decisions.decide import Decided
    from emu.sweeps.values import Span


@click.command("decide")
@spec_argument
@click.option(
    "--fabrics",
    metavar="NAMES",
    default=",".join(USUAL),
    show_default=True,
    help="The fabrics to choose from, separated by commas: ib, roce-lossless, roce-tuned, "
    "roce-lossy, spec (SPEC as it is), and variants of its `compare:`.",
)
@click.option(
    "--rates",
    metavar="RATES",
    help="Link rates to choose from, as 200Gbit,400Gbit: those of the cables to hosts. All other "
    "cables keep their ratio. [default: SPEC's]",
)
@click.option(
    "--by",
    metavar="FIGURE",
    help="The figure that decides, as step.step_ns or fct_slowdown.p99. [default: the iteration "
    "time, else the first figure of `emu sensitivity`]",
)
@click.option(
    "--margin",
    metavar="SHARE",
    default="5%",
    show_default=True,
    help="Fabrics that are worse than the best by no more than this are as good.",
)
@click.option(
    "--prices",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What NICs, cables, ports, switches and servers cost, and their power.",
)
@click.option(
    "--changes",
    type=click.Choice(CHANGES),
    default=ALL,
    show_default=True,
    help="Which changes are measured: settings, mistakes and failures, failures alone, or none.",
)
@click.option(
    "--grow",
    multiple=True,
    metavar="KEY=VALUES",
    help="Larger clusters, as topology.leaves=8,16; may be repeated; none for no growth. "
    "[default: two and four times the hosts]",
)
@click.option(
    "--longest-run",
    metavar="TIME",
    default="20s",
    show_default=True,
    help="A larger cluster whose run by packets is estimated to take longer is done by the flow "
    "model.",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY[=VALUES]",
    help="A key that roce-tuned searches, as for `emu tune`; may be repeated. [default: the "
    "marking curve, and how senders speed up]",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=24,
    show_default=True,
    help="Trials of the search.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Seeds of each run: the spec's seed and those after it; 5 at least.",
)
@settings_option
@workers_option
@scheduler_option
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; runs that are in it are not done again. "
    "[default: out/<name of the spec>-decide]",
)
@quiet_option
@json_option
def command(
    path: Path,
    fabrics: str,
    rates: str | None,
    by: str | None,
    margin: str,
    prices: Path | None,
    changes: str,
    grow: tuple[str, ...],
    longest_run: str,
    vary: tuple[str, ...],
    trials: int,
    seeds: int,
    settings: tuple[str, ...],
    workers: int | None,
    scheduler: str | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare fabrics for SPEC's cluster and workload, and recommend one, with the reasons.

    All run with the same seeds on the virtual clock: as they are, with settings changed, with parts
    that fail, and at larger sizes. A decision that was stopped goes on when it is started again.

    Exits with 1 if no fabric fits.
    """
    need_packages("a decision needs", ("optuna",))
    from emu.decisions.decide import run_decide
    from emu.decisions.request import (
        DecisionRequest,
        margin_of,
        rates_of,
        seconds_of,
        setup_of,
    )

    reading = Reading()
    spec = reading.of(lambda: load_spec(path, settings))
    rates_bps = reading.of(lambda: rates_of(names_of(rates), "--rates"))
    share = reading.of(lambda: margin_of(margin, "--margin"))
    sizes = reading.of(lambda: _growth(grow))
    seconds = reading.of(lambda: seconds_of(longest_run, "--longest-run"))
    keys = reading.of(lambda: varied(vary))
    reading.end()
    request = DecisionRequest(
        spec,
        fabrics=names_of(fabrics),
        rates_bps=rates_bps,
        by=by,
        margin=share,
        prices=prices,
        changes=changes,
        grow=sizes,
        longest_seconds=seconds,
        vary=keys or None,
        trials=trials,
        seeds=seeds,
        workers=workers,
        scheduler=scheduler,
    )
    setup = setup_of(request)
    with interrupts_keep_runs():
        decided = run_decide(
            setup,
            out or Path("out") / f"{setup.name}-decide",
            stream=None if quiet else sys.stderr,
            on_note=print_note,
        )
    _print(decided, as_json=as_json)
    sys.exit(ExitCode.OK if decided.choice is not None else ExitCode.CHECK_FAILED)


def _print(decided: Decided, *, as_json: bool) -> None:
    from emu.decisions.reasons import sentences
    from emu.decisions.tables import terminal_tables
    from emu.decisions.to_document import document

    print_tables(
        f"{decided.setup.name}: decision",
        sentences(decided),
        terminal_tables(decided),
        decided.files,
        sys.stderr if as_json else sys.stdout,
    )
    if as_json:
        click.echo(to_json(document(decided)), nl=False)


def _growth(texts: tuple[str, ...]) -> dict[str, Sequence[Any] | Span] | None:
    """The keys of all --grow with their values; none for no growth. Raises UsageError."""
    from emu.sweeps.values import axis_of

    if texts == (NONE,):
        return None
    if NONE in texts:
        raise UsageError("--grow none: the others name sizes; leave it or them out")
    axes = all_read(lambda text: axis_of(text, "--grow", "topology.leaves=8,16"), texts)
    keys = [axis.key for axis in axes]
    twice = [key for key in dict.fromkeys(keys) if keys.count(key) > 1]
    if twice:
        raise UsageError("\n".join(f"--grow {key}: is given twice; keep one" for key in twice))
    return {axis.key: axis.values for axis in axes}
