"""`emu tune SPEC`: searches settings that reach goals, and judges them on runs it has not seen."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from emu.cli.notes import print_note
from emu.cli.options import (
    json_option,
    model_option,
    quiet_option,
    scheduler_option,
    settings_option,
    spec_argument,
    workers_option,
)
from emu.cli.reading import Reading, all_read
from emu.cli.stopping import sigterm_interrupts
from emu.cli.varied import varied
from emu.errors import ExitCode, UsageError
from emu.report.summary import to_json
from emu.report.text import print_tables
from emu.spec.model import load_spec
from emu.sweeps.needs import need_packages

if TYPE_CHECKING:
    from emu.tuning.goals import Wish
    from emu.tuning.tune import Finished

T = TypeVar("T")


@click.command("tune")
@spec_argument
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY[=VALUES]",
    help="A key of the spec to search, with a range 20KB..400KB or a list a,b. Without values: a "
    "range that follows from rate, round trip and buffer. May be repeated.",
)
@click.option(
    "--minimise",
    multiple=True,
    metavar="FIGURE",
    help="A goal: a figure that is to be small, e.g. fct_slowdown.p99. May be repeated.",
)
@click.option(
    "--maximise",
    multiple=True,
    metavar="FIGURE",
    help="A goal: a figure that is to be large, e.g. median_goodput. May be repeated.",
)
@click.option(
    "--subject-to",
    "bounds",
    multiple=True,
    metavar="FIGURE<=LIMIT",
    help="What must hold in each run: <=, >= or =, e.g. pause_frames=0. May be repeated.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Seeds of a trial: the spec's seed and those after it.",
)
@click.option(
    "--trials",
    type=click.IntRange(1, 100_000),
    default=50,
    show_default=True,
    help="Trials of the study, with those that are in the folder already.",
)
@click.option(
    "--held-out",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Seeds of the judgement: those after the seeds of the trials.",
)
@click.option(
    "--loads",
    default="0.8,1.2",
    show_default=True,
    metavar="FACTORS",
    help="Further loads of the judgement, as factors of the spec's load; none for its load alone.",
)
@settings_option
@model_option
@workers_option
@scheduler_option
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; a study that is in it goes on. "
    "[default: out/<name of the spec>-tune]",
)
@quiet_option
@json_option
def command(
    path: Path,
    vary: tuple[str, ...],
    minimise: tuple[str, ...],
    maximise: tuple[str, ...],
    bounds: tuple[str, ...],
    seeds: int,
    trials: int,
    held_out: int,
    loads: str,
    settings: tuple[str, ...],
    model: str,
    workers: int | None,
    scheduler: str | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Search settings of SPEC that reach goals, and judge the winner.

    Optuna chooses the trials. The winner then runs with seeds and loads that no trial has seen,
    beside the defaults and the vendors' presets, and is refused unless it is better there. A
    search that was stopped goes on when it is started again.

    Exits with 1 if the winner is refused, or if no trial kept the constraints.
    """
    need_packages("tuning needs", ("optuna",))
    from emu.tuning.goals import bound_of
    from emu.tuning.request import TuneRequest, setup_of
    from emu.tuning.tune import run_tune

    reading = Reading()
    spec = reading.of(lambda: load_spec(path, settings))
    keys = reading.of(lambda: varied(vary))
    constraints = reading.of(lambda: all_read(lambda text: bound_of(text, "--subject-to"), bounds))
    factors = reading.of(lambda: _loads(loads))
    reading.end()
    request = TuneRequest(
        spec,
        keys,
        _wishes(minimise, maximise),
        constraints,
        seeds=seeds,
        trials=trials,
        held_out=held_out,
        loads=factors,
        model=model,
        workers=workers,
        scheduler=scheduler,
    )
    setup = setup_of(request)
    with sigterm_interrupts():
        finished = run_tune(
            setup,
            out or Path("out") / f"{setup.spec.name}-tune",
            stream=None if quiet else sys.stderr,
            on_note=print_note,
        )
    _print(finished, as_json=as_json)
    if finished.tuned.stop is not None:
        raise finished.tuned.stop
    sys.exit(ExitCode.OK if finished.tuned.is_accepted else ExitCode.CHECK_FAILED)


def _wishes(minimise: tuple[str, ...], maximise: tuple[str, ...]) -> list[Wish]:
    from emu.tuning.goals import Wish

    return [
        *(Wish(name, False, "--minimise") for name in minimise),
        *(Wish(name, True, "--maximise") for name in maximise),
    ]


def _loads(text: str) -> tuple[float, ...]:
    if text == "none":
        return ()
    try:
        return tuple(float(factor) for factor in text.split(","))
    except ValueError:
        raise UsageError(
            f"--loads {text}: is no list of factors; write it like 0.8,1.2, or none"
        ) from None


def _print(finished: Finished, *, as_json: bool) -> None:
    from emu.tuning.tables import sentences, terminal_tables
    from emu.tuning.to_document import document

    tuned = finished.tuned
    print_tables(
        f"{tuned.setup.spec.name}: search over "
        + ", ".join(own.key for own in tuned.setup.parameters),
        sentences(tuned),
        terminal_tables(tuned),
        finished.files,
        sys.stderr if as_json else sys.stdout,
    )
    if as_json:
        click.echo(to_json(document(tuned)), nl=False)
