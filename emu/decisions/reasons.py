"""Why a fabric is recommended: sentences, each with its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from emu.decisions.choice import (
    CRITERIA,
    EFFORT,
    LOST_PARTS,
    PRICE,
    RATE,
    SEARCH,
    STUCK,
    Choice,
    Criterion,
    Evidence,
    apart,
)
from emu.decisions.phrases import behind_of, damage, figure, gap, in_currency, named
from emu.decisions.standing import Standing, fastest
from emu.decisions.turns import changes
from emu.sensitivities.tables import LIMIT
from emu.units import write_rate
from emu.words import listed

if TYPE_CHECKING:
    from emu.decisions.decide import Decided, Grown

_FAILURES = ("link fails", "switch fails", "no subnet manager")
_MOST_NAMED = 8


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
        yield from _among_the_near(decided, choice)
    yield from _unfit(decided)
    if best.bill is not None:
        yield f"It costs {in_currency(best.bill)}, and takes {best.bill.watts / 1000:,.1f} kW."
    yield from _failures(best)
    yield from _tuning(decided, best)
    for grown in decided.growth:
        if grown.size.settings:
            yield _at_size(decided, grown, best)


# --- the recommendation ---


def _margin(decided: Decided) -> str:
    return f"{100 * decided.setup.request.margin:g} %"


def _beside_the_fastest(decided: Decided, choice: Choice) -> str:
    goal, best = decided.figures.deciding, choice.best
    margin = _margin(decided)
    if best is not choice.fastest:
        behind = best.standing.behind
        assert behind is not None, "it fits, as the fastest does"
        mark = figure(choice.fastest.standing.figure, goal)
        if not behind.is_shown:
            return f"The best is {choice.fastest.name}, {mark}: no difference can be shown."
        return (
            f"The best is {choice.fastest.name}, {mark}. On {best.name} it is {gap(behind)}, "
            f"within the margin of {margin}."
        )
    fits = [own for own in decided.evidence.values() if own.standing.fits and own is not best]
    if not fits:
        return "No other fabric fits." if len(decided.evidence) > 1 else "It is the only fabric."
    fits.sort(key=behind_of)
    others = [f"{_gap(own.standing)} on {own.name}" for own in fits]
    return f"It is the best of all. The others: {listed(others, _MOST_NAMED)}."


def _gap(standing: Standing) -> str:
    behind = standing.behind
    return "not shown to differ" if behind is None or not behind.is_shown else gap(behind)


def _among_the_near(decided: Decided, choice: Choice) -> Iterator[str]:
    """Which fabrics are as good, and what sets the recommended one apart from each of them."""
    margin = decided.setup.request.margin
    within = [own.name for own in choice.near if behind_of(own) <= margin]
    beyond = [own.name for own in choice.near if behind_of(own) > margin]
    text = f"Within the margin of {_margin(decided)}: {listed(within, _MOST_NAMED)}."
    if beyond:
        text += (
            f" The seeds show no difference from the best, so near as well: "
            f"{listed(beyond, _MOST_NAMED)}."
        )
    yield text
    best, *others = choice.near
    by_criterion: dict[Criterion | None, list[Evidence]] = {}
    for other in others:
        by_criterion.setdefault(apart(best, other), []).append(other)
    for criterion in CRITERIA:
        for other in by_criterion.get(criterion, [])[:1]:
            yield _DECIDES[criterion](best, other)
    if None in by_criterion:
        alike = listed([own.name for own in by_criterion[None]], _MOST_NAMED)
        yield (
            f"Costs, rates and changes do not set {best.name} apart from {alike}, so the figure "
            "decides."
        )


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
