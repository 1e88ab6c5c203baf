"""The sentences and tables of a measurement, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from emu.measure.bootstrap import FEWEST, Interval, interval_of, method_in_words
from emu.report.run_figures import unit_of, written
from emu.report.seeds import NO_DIFFERENCE
from emu.report.table import NOT_APPLICABLE, NOT_KNOWN, UNFINISHED, Cell, Column, Table, Tone
from emu.sensitivities.costs import THRESHOLD, Cost, Count
from emu.sensitivities.effect import Effect, percent
from emu.sweeps.axes import label_of
from emu.words import counted, listed

if TYPE_CHECKING:
    from emu.sensitivities.measure import Measured, Result

_FIRST_ROWS = 24
"""Of the terminal."""
_MOST_NAMED = 4
LIMIT = f"{THRESHOLD:.0%}".replace("%", " %")
LISTS_DIFFER = (
    "The lists of changes differ: each fabric has settings that the other has not. So the numbers "
    "of changes count what there is to get wrong, and not the same things on both."
)


def sentences(measured: Measured) -> Iterator[str]:
    """What was done, and the summary of each fabric."""
    seeds = counted(len(measured.setup.seeds), "seed")
    yield (
        f"Changes one at a time, with {seeds} each. {counted(measured.computed, 'run')} done now."
    )
    if measured.missing:
        yield (
            f"It was stopped: {counted(measured.missing, 'run')} missing. Start it again to go on."
        )
    if len(measured.setup.seeds) < FEWEST:
        yield f"No difference can be shown: it takes {FEWEST} seeds."
    for own in measured.results:
        yield from _about(own)
    if len({own.side.spec.fabric for own in measured.results}) > 1:
        yield LISTS_DIFFER


def _about(own: Result) -> Iterator[str]:
    name, costly = own.side.name, own.costly
    if len(own.side.before) < FEWEST:
        yield f"{name}: {counted(len(own.costs), 'change')} measured."
        return
    stuck = sum(cost.stuck > 0 for cost in costly)
    and_stuck = f"; with {stuck} of them flows do not finish" if stuck else ""
    text = f"{name}: {len(costly)} of {counted(len(own.costs), 'change')} cost more than {LIMIT}"
    text += f" in a figure below{and_stuck}."
    if costly:
        text += f" The worst is {_named(costly[0])}: {_amount(costly[0])}."
    yield text
    if own.gains:
        names = listed([f"{_named(c)} ({_share(c.best)})" for c in own.gains], _MOST_NAMED)
        yield (
            f"{name}: {counted(len(own.gains), 'change')} of a setting made a figure better by "
            f"more than {LIMIT}, so it is not at its best for this traffic: {names}."
        )
    unfinished = sum(bool(row.get("unfinished_flows")) for row in own.side.before.values())
    if unfinished:
        yield f"{name}: without any change, flows do not finish with {unfinished} of the seeds."
    wrong = max(row.get("checks_failed") or 0 for row in own.side.before.values())
    if wrong:
        yield f"{name}: without any change, up to {counted(wrong, 'check')} of the spec fail."


def _named(cost: Cost) -> str:
    return f"{cost.change.name} ({cost.change.what})"


def _amount(cost: Cost) -> str:
    if cost.stuck:
        return f"flows do not finish in {cost.stuck} of {counted(cost.seeds, 'seed')}"
    return _share(cost.worst)


def _share(effect: Effect | None) -> str:
    return "" if effect is None else f"{effect.goal.name} {effect.words}"


def summary_table(measured: Measured) -> Table:
    """The fabrics side by side."""
    heads = ("fabric", "changes", f"cost more than {LIMIT}", "the worst", "left out")
    rows = [
        (
            Cell(own.side.name),
            Cell(str(len(own.costs))),
            *_costly_cells(own),
            Cell(str(len(own.left_out))),
        )
        for own in measured.results
    ]
    return Table(
        title="Tuning effort",
        columns=tuple(Column(h, numeric=h not in ("fabric", "the worst")) for h in heads),
        rows=tuple(rows),
    )


def _costly_cells(own: Result) -> tuple[Cell, Cell]:
    """How many changes cost more, and the worst of them."""
    if len(own.side.before) < FEWEST:
        return NOT_KNOWN, NOT_KNOWN
    if not own.costly:
        return Cell("0"), Cell("none", Tone.GOOD)
    worst = f"{_named(own.costly[0])}: {_amount(own.costly[0])}"
    return Cell(str(len(own.costly)), Tone.BAD), Cell(worst)


def shared_table(measured: Measured) -> Table:
    """The changes that all fabrics have, with the figure that each raises most; no rows for one
    fabric."""
    first, *others = ({c.change.name: c for c in own.costs} for own in measured.results)
    names = [name for name in first if others and all(name in own for own in others)]
    return Table(
        title="Changes that all fabrics have",
        columns=(
            Column("change", numeric=False),
            *(Column(own.side.name) for own in measured.results),
        ),
        rows=tuple(
            (Cell(name), *(_worst_cell(own[name]) for own in (first, *others))) for name in names
        ),
        note="The figure that the change raises most on each.",
    )


def _worst_cell(cost: Cost) -> Cell:
    if not cost.stuck and cost.worst is None:
        return Cell(NO_DIFFERENCE, Tone.FAINT)
    return Cell(_amount(cost), Tone.BAD if cost.is_costly else Tone.PLAIN)


def terminal_tables(measured: Measured) -> Iterator[Table]:
    if len(measured.results) > 1:
        yield summary_table(measured)
        yield shared_table(measured)
    for own in measured.results:
        yield cost_table(own, _FIRST_ROWS)
    for own in measured.results:
        yield left_out_table(own)


def cost_table(own: Result, most: int | None = None) -> Table:
    """What each change costs; the first row has the figures without any."""
    shown = own.costs if most is None else own.costs[:most]
    hidden = len(own.costs) - len(shown)
    more = f" {counted(hidden, 'change')} more: sensitivity.html has all." if hidden else ""
    return Table(
        title=f"{own.side.name}: what each change costs",
        columns=(
            Column("change", numeric=False),
            *(Column(goal.name) for goal in own.goals),
            *(Column(label_of(column)) for column in own.columns),
            Column("what it is", numeric=False),
            Column("remarks", numeric=False),
        ),
        rows=(_row_without(own), *(_row(cost) for cost in shown)),
        note=_note(own) + more,
    )


def _note(own: Result) -> str:
    count = len(own.costs) * len(own.goals)
    return (
        f"Differences from the fabric without changes, seed by seed, and their intervals: "
        f"{method_in_words()}. A difference is shown if its interval excludes 0, or if the figure "
        "is more than twice as high with some of the seeds: then it is the mean of those. If no "
        "change did "
        f"anything, about {max(1, round(count / 20))} of the {count:,} times and slowdowns would "
        "still show one. A difference without an interval is the same with each seed."
    )


def _row_without(own: Result) -> tuple[Cell, ...]:
    before = list(own.side.before.values())
    figures = [(g.figure.unit, [g.value(row) for row in before]) for g in own.goals]
    figures += [(unit_of(column), [row.get(column) for row in before]) for column in own.columns]
    return (
        Cell("none"),
        *(_mean_cell(unit, values) for unit, values in figures),
        Cell("the fabric as it is"),
        Cell(""),
    )


def _mean_cell(unit: str, values: list[float | None]) -> Cell:
    known = [value for value in values if value is not None]
    return Cell(written(interval_of(known).mean, unit)) if known else UNFINISHED


def _row(cost: Cost) -> tuple[Cell, ...]:
    return (
        Cell(cost.change.name),
        *(_effect_cell(effect, cost.seeds) for effect in cost.effects),
        *(_count_cell(count) for count in cost.counts),
        Cell(cost.change.what),
        Cell("; ".join(cost.remarks), Tone.BAD if cost.remarks else Tone.PLAIN),
    )


def _effect_cell(effect: Effect, seeds: int) -> Cell:
    missing = seeds - len(effect.shares)
    if missing or effect.share is None:
        return Cell(f"unfinished in {missing} of {seeds}", Tone.BAD)
    if not effect.is_shown:
        return Cell(NO_DIFFERENCE, Tone.FAINT)
    if effect.in_some:
        return Cell(effect.words, Tone.BAD)
    tone = Tone.BAD if effect.mean > THRESHOLD else Tone.PLAIN
    return Cell(
        f"{percent(effect.mean)}{_ends(effect.share)}",
        Tone.GOOD if effect.mean < -THRESHOLD else tone,
    )


def _ends(share: Interval) -> str:
    if share.low is None or share.high is None or share.low == share.high:
        return ""
    return f" [{percent(share.low)}, {percent(share.high)}]"


def _count_cell(count: Count) -> Cell:
    if count.difference is None or count.after is None:
        return NOT_APPLICABLE
    if not count.difference.excludes_zero:
        return Cell(NO_DIFFERENCE, Tone.FAINT)
    sign = "+" if count.difference.mean > 0 else "-"
    return Cell(f"{sign}{written(abs(count.difference.mean), unit_of(count.column))}")


def left_out_table(own: Result) -> Table:
    """The changes that this fabric cannot have, with the reasons."""
    return Table(
        title=f"{own.side.name}: changes that were left out",
        columns=(Column("change", numeric=False), Column("reason", numeric=False)),
        rows=tuple((Cell(left.name), Cell(left.reason)) for left in own.left_out),
    )
