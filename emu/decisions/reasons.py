"""Why a fabric is recommended, and what would change it: sentences, each with its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import ceil, floor
from typing import TYPE_CHECKING

from emu.decisions.candidates import LOSSLESS, TUNED
from emu.decisions.choice import (
    EFFORT,
    LOST_PARTS,
    PRICE,
    RATE,
    SEARCH,
    STUCK,
    Choice,
    Criterion,
    Evidence,
    choose,
)
from emu.decisions.prices import Bill
from emu.decisions.standing import Standing, behind, fastest, standings_of
from emu.measure.bootstrap import Interval
from emu.report.run_figures import written
from emu.sensitivities.costs import Cost
from emu.sensitivities.tables import LIMIT, percent
from emu.tuning.goals import Goal
from emu.units import write_rate, write_time
from emu.words import counted, listed

if TYPE_CHECKING:
    from emu.decisions.decide import Decided, Grown

_FAILURES = ("link fails", "switch fails", "no subnet manager")
_MOST_NAMED = 4


def sentences(decided: Decided) -> Iterator[str]:
    """All of it, for the terminal."""
    yield from reasons(decided)
    found = list(changes(decided))
    if found:
        yield "What would change it:"
        yield from (f"- {sentence}" for sentence in found)


def reasons(decided: Decided) -> Iterator[str]:
    """The recommendation, and the figures that it stands on."""
    choice, goal = decided.choice, decided.figures.deciding
    if choice is None:
        yield "No fabric is recommended: on none do all flows finish and all checks hold."
        yield from _unfit(decided)
        return
    best = choice.best
    yield f"Recommended: {best.name}. The {named(goal)} is {figure(best.standing.figure, goal)}."
    yield _beside_the_fastest(decided, choice)
    if len(choice.near) > 1:
        yield _among_the_near(decided, choice)
    yield from _unfit(decided)
    if best.bill is not None:
        yield f"It costs {in_currency(best.bill)}, and takes {best.bill.watts / 1000:,.1f} kW."
    yield from _failures(best)
    yield from _tuning(decided, best)
    for grown in decided.growth:
        if grown.size.settings:
            yield _at_size(decided, grown, best)


def changes(decided: Decided) -> Iterator[str]:
    """What would change the recommendation."""
    choice = decided.choice
    if choice is None:
        return
    yield from _by_margin(decided, choice)
    yield from _by_price(decided, choice)
    yield from _by_other_figures(decided, choice)
    yield from _by_failures(decided, choice)
    yield from _by_size(decided, choice)
    yield from _by_tuning(decided, choice)
    yield from _by_switches(decided)


# --- the recommendation ---


def figure(own: Interval | None, goal: Goal) -> str:
    """`1.29 ms [1.27 ms, 1.31 ms]`."""
    if own is None:
        return "unknown"
    unit = goal.figure.unit
    text = written(own.mean, unit)
    ends = [written(end, unit) for end in (own.low, own.high) if end is not None]
    return text if set(ends) <= {text} else f"{text} [{', '.join(ends)}]"


def in_currency(bill: Bill) -> str:
    energy = f" ({bill.money(bill.energy)} of it for energy)" if bill.energy else ""
    return f"{bill.money(bill.total)}{energy}"


def share(value: float) -> str:
    """`2.7 %`, without a sign."""
    return percent(abs(value)).removeprefix("+")


def margin_of(decided: Decided) -> str:
    return f"{100 * decided.setup.request.margin:g} %"


def named(goal: Goal) -> str:
    """`incast: last completion` -> `last completion of incast`."""
    entry, colon, what = goal.name.partition(": ")
    return f"{what} of {entry}" if colon else goal.name


def _worse(goal: Goal) -> str:
    return "lower" if goal.maximise else "higher"


def _beside_the_fastest(decided: Decided, choice: Choice) -> str:
    goal, best = decided.figures.deciding, choice.best
    margin = margin_of(decided)
    if best is not choice.fastest:
        gap = best.standing.behind
        assert gap is not None, "it fits, as the fastest does"
        mark = figure(choice.fastest.standing.figure, goal)
        if not gap.excludes_zero:
            return f"The best is {choice.fastest.name}, {mark}: no difference can be shown."
        return (
            f"The best is {choice.fastest.name}, {mark}. That of {best.name} is {share(gap.mean)} "
            f"{_worse(goal)}, within the margin of {margin}."
        )
    fits = [own for own in decided.evidence.values() if own.standing.fits and own is not best]
    if not fits:
        return "No other fabric fits." if len(decided.evidence) > 1 else "It is the only fabric."
    fits.sort(key=_behind)
    others = [f"that of {own.name} {_gap(own.standing, goal)}" for own in fits]
    return f"It is the best of all; {listed(others, _MOST_NAMED)}."


def _gap(standing: Standing, goal: Goal) -> str:
    gap = standing.behind
    if gap is None or not gap.excludes_zero:
        return "is not shown to differ"
    return f"is {share(gap.mean)} {_worse(goal)}"


def _among_the_near(decided: Decided, choice: Choice) -> str:
    best, second = choice.near[0], choice.near[1]
    near = listed([own.name for own in choice.near], _MOST_NAMED)
    margin = margin_of(decided)
    what = f"Within the margin of {margin} are {near}"
    if choice.criterion is None:
        return f"{what}. Costs, rates and changes do not set them apart, so the figure decides."
    return f"{what}. {_DECIDES[choice.criterion](best, second)}"


def _by_cost(best: Evidence, second: Evidence) -> str:
    assert best.bill is not None
    assert second.bill is not None
    return (
        f"{best.name} costs least: {in_currency(best.bill)}. {second.name} costs "
        f"{in_currency(second.bill)}."
    )


def _by_rate(best: Evidence, second: Evidence) -> str:
    return (
        f"{best.name} has the slower links: {write_rate(best.candidate.rate_bps)}, and "
        f"{second.name} {write_rate(second.candidate.rate_bps)}."
    )


def _by_stuck(best: Evidence, second: Evidence) -> str:
    return (
        f"On {best.name}, flows do not finish with {best.stuck_failures} of {len(LOST_PARTS)} "
        f"failures of links and switches, and on {second.name} with {second.stuck_failures}."
    )


def _by_search(best: Evidence, second: Evidence) -> str:
    return f"{best.name} needs no search of settings, as {second.name} does."


def _by_effort(best: Evidence, second: Evidence) -> str:
    return (
        f"Of the {len(best.shared)} changes that all fabrics have, {best.costly_shared} cost more "
        f"than {LIMIT} on {best.name}, and {second.costly_shared} on {second.name}."
    )


_DECIDES: Mapping[Criterion, Callable[[Evidence, Evidence], str]] = {
    PRICE: _by_cost,
    RATE: _by_rate,
    STUCK: _by_stuck,
    SEARCH: _by_search,
    EFFORT: _by_effort,
}


def _unfit(decided: Decided) -> Iterator[str]:
    for own in decided.evidence.values():
        if not own.standing.fits:
            yield f"{own.name} is no choice: {listed(own.standing.faults)}."


# --- failures and changes of settings ---


def damage(cost: Cost) -> str:
    """What a change does, in words."""
    if cost.stuck:
        return f"flows do not finish with {cost.stuck} of {counted(cost.seeds, 'seed')}"
    if cost.worst is None:
        return "no difference is shown"
    return f"{named(cost.worst.goal)} {percent(cost.worst.mean)}"


def _failures(best: Evidence) -> Iterator[str]:
    found = []
    for name in _FAILURES:
        cost = best.cost_of(name)
        if cost is not None:
            found.append(f"{name} ({cost.change.what}): {damage(cost)}")
    if found:
        yield f"What failures cost on it: {'; '.join(found)}."


_ALL_CHANGES = "changes of its settings, mistakes and failures"


def _tuning(decided: Decided, best: Evidence) -> Iterator[str]:
    for tuning in decided.tunings:
        if tuning.candidate.name == best.name:
            yield f"Its settings: {tuning.origin}."
    result = best.result
    if not result.costs:
        return
    worst = ""
    if result.costly and decided.setup.request.changes == "all":
        change = result.costly[0].change
        worst = f" The worst is {change.name} ({change.what}): {damage(result.costly[0])}."
    of = "failures" if decided.setup.request.changes == "failures" else _ALL_CHANGES
    yield f"{len(result.costly)} of {len(result.costs)} {of} cost more than {LIMIT}.{worst}"


# --- larger clusters ---


def _at_size(decided: Decided, grown: Grown, best: Evidence) -> str:
    goal, size = decided.figures.deciding, grown.size
    own = grown.standings[best.name]
    text = f"At {size.hosts:,} hosts ({size.model}) its {named(goal)} is {figure(own.figure, goal)}"
    if not own.fits:
        return f"{text}; {listed(own.faults)}."
    mark = fastest(grown.standings, goal)
    if mark is None or mark.name == best.name:
        return f"{text}, the best of all."
    return f"{text}; the best is {mark.name}, {figure(mark.figure, goal)}."


# --- what would change it ---


def _by_margin(decided: Decided, choice: Choice) -> Iterator[str]:
    """Margins are rounded so that the sentence holds for the number that it has."""
    goal, best = decided.figures.deciding, choice.best
    gap = _behind(best)
    if best is not choice.fastest and best.standing.behind is not None:
        below = floor(1000 * gap) / 1000
        other = choose(decided.evidence, goal, below) if below < gap else None
        if other is not None and other.best is not best:
            yield f"With a margin of {100 * below:.1f} % or less it would be {_less(other, best)}."
    if best.bill is None:
        return
    least = best.bill.total
    for own in sorted(_outside(decided, choice), key=_behind):
        above = ceil(1000 * _behind(own)) / 1000
        assert own.bill is not None
        if own.bill.total >= least or above > 1:
            continue
        other = choose(decided.evidence, goal, above)
        if other is not None and other.best is own:
            least = own.bill.total
            saved = best.bill.total - least
            yield (
                f"With a margin of {100 * above:.1f} % it would be {own.name}, which costs "
                f"{own.bill.money(saved)} less ({share(saved / best.bill.total)})."
            )


def _less(other: Choice, best: Evidence) -> str:
    """The fabric that a smaller margin would choose."""
    return f"{other.best.name}, as {best.name} is then too far behind {other.fastest.name}"


def _outside(decided: Decided, choice: Choice) -> list[Evidence]:
    """The candidates with a price that fit, and are outside of the margin."""
    near = {own.name for own in choice.near}
    known = [own for own in decided.evidence.values() if own.bill and own.standing.behind]
    return [own for own in known if own.standing.fits and own.name not in near]


def _behind(own: Evidence) -> float:
    return own.standing.behind.mean if own.standing.behind is not None else 0.0


def _by_price(decided: Decided, choice: Choice) -> Iterator[str]:
    if len(choice.near) < 2:
        return
    best, second = choice.near[0], choice.near[1]
    if best.bill is None or second.bill is None:
        yield (
            f"Prices are not known (--prices): {len(choice.near)} fabrics are within the margin, "
            "and the cheapest of them would be recommended."
        )
        return
    gap = second.bill.total - best.bill.total
    if gap > 0:
        yield (
            f"If {second.name} cost more than {best.bill.money(gap)} less "
            f"({share(gap / second.bill.total)} of its price), it would be {second.name}."
        )


def _by_other_figures(decided: Decided, choice: Choice) -> Iterator[str]:
    """Figures by which the same rules would recommend another one."""
    best, margin = choice.best, decided.setup.request.margin
    for goal in decided.figures.others:
        rows = {name: own.standing.rows for name, own in decided.evidence.items()}
        standings = standings_of(rows, goal)
        evidence = {
            name: replace(own, standing=standings[name]) for name, own in decided.evidence.items()
        }
        other = choose(evidence, goal, margin)
        if other is None or other.best.name == best.name:
            continue
        yield (
            f"If {named(goal)} decided (--by), it would be {other.best.name}: "
            f"{figure(other.best.standing.figure, goal)} there, and on {best.name} "
            f"{figure(evidence[best.name].standing.figure, goal)}."
        )


def _by_failures(decided: Decided, choice: Choice) -> Iterator[str]:
    """Failures with which another fabric within the margin is better by more than the margin."""
    best, goal = choice.best, decided.figures.deciding
    for name, words in _SAID.items():
        own = best.rows_with(name)
        gaps: dict[str, Interval] = {}
        for other in choice.near[1:]:
            rows = other.rows_with(name)
            gap = behind(own, rows, goal) if own and rows else None
            if gap is not None and gap.excludes_zero:
                gaps[other.name] = gap
        least = max(gaps, key=lambda each: gaps[each].mean, default=None)
        if least is not None and gaps[least].mean > decided.setup.request.margin:
            yield (
                f"If what happens when a {words} decided, it would be {least}: with it, "
                f"{named(goal)} of {best.name} is {share(gaps[least].mean)} {_worse(goal)}."
            )


_SAID = {
    "link fails": "link fails",
    "switch fails": "switch fails",
    "no subnet manager": "link fails without a subnet manager",
}


def _by_size(decided: Decided, choice: Choice) -> Iterator[str]:
    goal, best = decided.figures.deciding, choice.best
    for grown in decided.growth:
        own, mark = grown.standings[best.name], fastest(grown.standings, goal)
        if not grown.size.settings or mark is None or own.is_near(decided.setup.request.margin):
            continue
        why = listed(own.faults)
        if own.fits and own.behind is not None:
            why = f"its {named(goal)} is {share(own.behind.mean)} {_worse(goal)}"
        yield (
            f"At {grown.size.hosts:,} hosts ({grown.size.model}), {best.name} is outside of the "
            f"margin, beside {mark.name}: {why}."
        )


def _by_tuning(decided: Decided, choice: Choice) -> Iterator[str]:
    best, goal = choice.best, decided.figures.deciding
    if best.candidate.fabric != TUNED:
        return
    name = best.name.replace(TUNED, LOSSLESS)
    plain = decided.evidence.get(name)
    if plain is None:
        return
    gap = behind(plain.standing.rows, best.standing.rows, goal)
    if gap is not None:
        how = f"{share(gap.mean)} {_worse(goal)}" if gap.excludes_zero else "not shown to differ"
        yield f"Without its settings, {named(goal)} is {how} ({name})."


def _by_switches(decided: Decided) -> Iterator[str]:
    """Assumptions about switches that differ between the fabrics."""
    found: dict[str, str] = {}
    for own in decided.evidence.values():
        spec = own.candidate.spec
        switch = next(iter(spec.topology.build().switch))
        how = "cut-through" if spec.cuts_through(switch) else "store-and-forward"
        latency = write_time(spec.switch_latency(switch)[0])
        found.setdefault(f"{latency}, {how}", own.name)
    if len(found) > 1:
        each = listed([f"{words} on {name}" for words, name in found.items()])
        yield (
            f"Switches are assumed to be different: {each}. Give switches.latency and "
            "switches.switching if those that you compare are not."
        )
