"""The page of a search, one HTML file that needs no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.models import MODELS
from emu.report.palette import COLOURS
from emu.report.table import Cell, Column, Table
from emu.report.templating import environment
from emu.tuning.charts import charts
from emu.tuning.tables import MOST_ROWS, held_out_tables, sentences, set_line, trials_table
from emu.tuning.vendor import VendorText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emu.tuning.tune import Tuned


def page(tuned: Tuned, texts: Sequence[VendorText]) -> str:
    """`texts`: the winner for devices."""
    return (
        environment()
        .get_template("tune.html.j2")
        .render(
            title=tuned.setup.spec.name,
            badge=_badge(tuned),
            is_good=tuned.is_accepted,
            sentences=list(sentences(tuned)),
            goals=[goal.words for goal in tuned.goals],
            constraints=[own.words for own in tuned.constraints],
            model=MODELS[tuned.setup.request.model].how,
            set_line=set_line(tuned.winner.settings) if tuned.winner else "",
            keys=_keys_table(tuned),
            reasons=_reasons(tuned),
            rivals=_rivals_table(tuned),
            held_out=list(held_out_tables(tuned)),
            charts=list(charts(tuned)),
            front=_front_table(tuned),
            trials=trials_table(tuned, tuned.trials, "All trials", MOST_ROWS),
            texts=[own for own in texts if own.text or own.missing],
            colours=COLOURS,
        )
    )


def _badge(tuned: Tuned) -> str:
    if tuned.stop is not None:
        return "stopped"
    if tuned.winner is None:
        return "no winner"
    return "winner accepted" if tuned.is_accepted else "winner refused"


def _keys_table(tuned: Tuned) -> Table:
    rows = []
    for own in tuned.setup.parameters:
        found = "" if tuned.winner is None else str(tuned.winner.settings[own.key])
        scale = "logarithmic" if own.is_log else ""
        rows.append(tuple(map(Cell, (own.key, found, own.text, scale))))
    heads = ("key", "winner", "values", "scale")
    return Table(
        title="Keys of the search",
        columns=tuple(Column(name, numeric=False) for name in heads),
        rows=tuple(rows),
    )


def _reasons(tuned: Tuned) -> list[str]:
    """Why emu chose the ranges that the user left to it."""
    found = [f"{own.key}: {own.why}" for own in tuned.setup.parameters if own.why]
    return [*found, _LENGTHS] if found else []


_LENGTHS = (
    "R: rate of the fastest cable of a host. RTT: round trip of a lone packet between the farthest "
    "hosts. BDP: R times RTT. limit: what a port may hold before it pauses or drops."
)


def _rivals_table(tuned: Tuned) -> Table:
    return Table(
        title="What the winner is compared with",
        columns=(Column("settings", numeric=False), Column("meaning", numeric=False)),
        rows=tuple((Cell(own.name), Cell(own.meaning)) for own in tuned.setup.rivals),
        note="Buffer, classes, lossless priorities and scheduling are the spec's in all of them.",
    )


def _front_table(tuned: Tuned) -> Table:
    """The front with a --set line for each trial; no rows for one goal."""
    rows = [
        (Cell(str(own.number)), Cell(set_line(own.settings)))
        for own in (tuned.front if len(tuned.goals) > 1 else ())
    ]
    return Table(
        title="Settings on the Pareto front",
        columns=(Column("trial"), Column("settings", numeric=False)),
        rows=tuple(rows[:MOST_ROWS]),
    )
