"""The tables of a decision, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from emu.decisions.candidates import Refused
from emu.decisions.choice import Choice, Evidence
from emu.decisions.phrases import damage, figure, in_currency
from emu.decisions.prices import parts_left_out
from emu.decisions.standing import Standing, fastest
from emu.measure.bootstrap import method_in_words
from emu.report.seeds import NO_DIFFERENCE
from emu.report.table import NOT_APPLICABLE, UNFINISHED, Cell, Column, Table, Tone
from emu.sensitivities.change import Kind
from emu.sensitivities.effect import percent
from emu.sensitivities.tables import LIMIT, LISTS_DIFFER
from emu.tuning.goals import Goal
from emu.tuning.judge import mean_of
from emu.words import listed

if TYPE_CHECKING:
    from emu.decisions.decide import Decided


def terminal_tables(decided: Decided) -> Iterator[Table]:
    yield comparison(decided)
    yield failures(decided)
    yield growth(decided)
    yield costs(decided)
    yield refused(decided)


def comparison(decided: Decided) -> Table:
    """The candidates side by side, the recommended one first, then as the figure orders them."""
    figures, choice = decided.figures, decided.choice
    has_bills = any(own.bill for own in decided.evidence.values())
    has_changes = any(own.result.costs for own in decided.evidence.values())
    columns = [Column("fabric", numeric=False), Column(figures.deciding.name)]
    columns += [Column("beside the best"), *(Column(goal.name) for goal in figures.others)]
    what = "failures" if decided.setup.request.changes == "failures" else "changes"
    columns += [Column(f"{what} that cost more than {LIMIT}")] if has_changes else []
    columns += [Column("cost"), Column("power")] if has_bills else []
    columns += [Column("remarks", numeric=False)]
    rows = []
    for own in _ordered(decided):
        tone = Tone.GOOD if choice is not None and own is choice.best else Tone.PLAIN
        row = [Cell(own.name, tone), _figure_cell(own.standing, figures.deciding)]
        row += [_behind_cell(decided, own.standing)]
        row += [_mean_cell(own.standing, goal) for goal in figures.others]
        row += [Cell(f"{len(own.result.costly)} of {len(own.result.costs)}")] if has_changes else []
        row += _bill_cells(own) if has_bills else []
        rows.append((*row, _remarks(own, choice)))
    return Table(
        title="The fabrics beside each other",
        columns=tuple(columns),
        rows=tuple(rows),
        note=_note(decided),
    )


def _note(decided: Decided) -> str:
    seeds = len(decided.setup.seeds)
    text = (
        f"Means over {seeds} seeds, and their intervals: {method_in_words()}. Beside the best: the "
        "mean difference, seed by seed, shown if its interval excludes 0."
    )
    return " ".join([text, *_what_differs(decided)])


def _what_differs(decided: Decided) -> Iterator[str]:
    """What else there is to know about the fabrics before they are compared."""
    evidence = decided.evidence.values()
    same = [own.name for own in evidence if _is_same_with_all_seeds(own, decided.figures.deciding)]
    if same:
        name = decided.figures.deciding.name
        yield f"On {listed(same)}, {name} is the same with all seeds, so it has no interval."
    searched = [own.candidate.name for own in decided.tunings]
    if searched:
        yield (
            f"Settings were searched for {listed(searched)} alone; all others have the defaults, "
            "or those of the spec."
        )
    kinds = {own.candidate.spec.fabric for own in evidence}
    if len(kinds) > 1 and decided.setup.request.changes == "all":
        yield LISTS_DIFFER


def _is_same_with_all_seeds(own: Evidence, goal: Goal) -> bool:
    return len({goal.value(row) for row in own.standing.rows.values()} - {None}) == 1


def _ordered(decided: Decided) -> list[Evidence]:
    goal, choice = decided.figures.deciding, decided.choice

    def order(own: Evidence) -> tuple[bool, bool, float]:
        mean = own.standing.figure.mean if own.standing.figure is not None else 0.0
        is_best = choice is not None and own is choice.best
        return not is_best, not own.standing.fits, -mean if goal.maximise else mean

    return sorted(decided.evidence.values(), key=order)


def _figure_cell(standing: Standing, goal: Goal) -> Cell:
    return UNFINISHED if standing.figure is None else Cell(figure(standing.figure, goal))


def _behind_cell(decided: Decided, standing: Standing) -> Cell:
    if not standing.fits or standing.behind is None:
        return NOT_APPLICABLE
    mark = fastest({n: e.standing for n, e in decided.evidence.items()}, decided.figures.deciding)
    if mark is standing:
        return Cell("the best", Tone.GOOD)
    if not standing.behind.is_shown:
        return Cell(NO_DIFFERENCE, Tone.FAINT)
    is_near = standing.is_near(decided.setup.request.margin)
    sign = -1 if decided.figures.deciding.maximise else 1
    share = percent(sign * standing.behind.shown)
    text = f"{share} {standing.behind.seeds_in_words}".rstrip()
    return Cell(text, Tone.PLAIN if is_near else Tone.BAD)


def _mean_cell(standing: Standing, goal: Goal) -> Cell:
    own = mean_of(goal, standing.rows)
    return UNFINISHED if own is None else Cell(figure(own, goal))


def _bill_cells(own: Evidence) -> list[Cell]:
    if own.bill is None:
        return [NOT_APPLICABLE, NOT_APPLICABLE]
    return [Cell(own.bill.money(own.bill.total)), Cell(f"{own.bill.watts / 1000:,.1f} kW")]


def _remarks(own: Evidence, choice: Choice | None) -> Cell:
    if not own.standing.fits:
        return Cell(listed(own.standing.faults), Tone.BAD)
    if choice is not None and own is choice.best:
        return Cell("recommended", Tone.GOOD)
    return Cell("")


def failures(decided: Decided) -> Table:
    """What failures cost on each fabric, in the figure that they raise most."""
    by_name: dict[str, dict[str, Cell]] = {}
    for own in decided.evidence.values():
        for cost in own.result.costs:
            if cost.change.kind is Kind.FAILURE:
                tone = Tone.BAD if cost.is_costly else Tone.PLAIN
                by_name.setdefault(cost.change.name, {})[own.name] = Cell(damage(cost), tone)
    names = list(decided.evidence)
    return Table(
        title="What failures cost",
        columns=tuple(Column(name, numeric=False) for name in ("failure", *names)),
        rows=tuple(
            (Cell(failure), *(cells.get(name, NOT_APPLICABLE) for name in names))
            for failure, cells in by_name.items()
        ),
        note="The figure that a failure raises most, as a share of its value without the failure: "
        "where that is small, the same delay is a larger share. Each is one cable or one switch at "
        "one time; another one may cost more. Where only some seeds are hit, it is the mean of "
        "those. changes/sensitivity.html has all changes.",
    )


def growth(decided: Decided) -> Table:
    """The figure that decides at each size of the cluster."""
    goal, names = decided.figures.deciding, list(decided.evidence)
    hosts = len(next(iter(decided.evidence.values())).candidate.spec.topology.build().host)
    own = {name: evidence.standing for name, evidence in decided.evidence.items()}
    grown = [(hosts, "packets", own)]
    grown += [(each.size.hosts, each.size.model, dict(each.standings)) for each in decided.growth]
    return Table(
        title=f"{goal.name} as the cluster grows",
        columns=(
            Column("hosts"),
            Column("model", numeric=False),
            *(Column(name) for name in names),
        ),
        rows=_growth_rows(grown, names, goal) if decided.growth else (),
        note="The flow model has no queues, pauses or losses, so it knows no difference between "
        "lossless, tuned and lossy."
        if any(each.size.model == "flow" for each in decided.growth)
        else "",
    )


def _growth_rows(
    grown: Sequence[tuple[int, str, Mapping[str, Standing]]], names: Sequence[str], goal: Goal
) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (Cell(f"{hosts:,}"), Cell(model), *(_size_cell(standings, name, goal) for name in names))
        for hosts, model, standings in grown
    )


def _size_cell(standings: Mapping[str, Standing], name: str, goal: Goal) -> Cell:
    own = standings[name]
    if not own.fits:
        return Cell(listed(own.faults), Tone.BAD)
    mark = fastest(standings, goal)
    return Cell(figure(own.figure, goal), Tone.GOOD if mark is own else Tone.PLAIN)


def costs(decided: Decided) -> Table:
    """The parts of each fabric, with what all of them cost."""
    rows = []
    for own in decided.evidence.values():
        bill = own.bill
        for line in bill.lines if bill is not None else ():
            money = Cell(f"{line.price:,.0f}")
            power = Cell(f"{line.watts / 1000:,.2f} kW")
            rows.append((Cell(own.name), Cell(line.what), Cell(f"{line.count:,}"), money, power))
        if bill is not None:
            total = Cell(in_currency(bill))
            power = Cell(f"{bill.watts / 1000:,.2f} kW")
            rows.append((Cell(own.name), Cell("all"), Cell(""), total, power))
    prices = decided.setup.prices
    left_out = parts_left_out(prices) if prices is not None else []
    return Table(
        title="What each fabric costs",
        columns=(
            Column("fabric", numeric=False),
            Column("part", numeric=False),
            Column("number"),
            Column("price"),
            Column("power"),
        ),
        rows=tuple(rows),
        note=f"Not in the file of prices, so not counted: {listed(left_out)}." if left_out else "",
    )


def refused(decided: Decided) -> Table:
    """What could not be, with the reasons."""
    found: list[Refused] = [*decided.refused, *decided.setup.sizes_refused]
    return Table(
        title="What was left out",
        columns=(Column("what", numeric=False), Column("reason", numeric=False)),
        rows=tuple((Cell(own.name), Cell(own.reason)) for own in found),
    )
