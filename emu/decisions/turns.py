"""What would change a recommendation, found by the same rules with other numbers, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil, floor
from typing import TYPE_CHECKING

from emu.decisions.choice import (
    EFFORT,
    PRICE,
    RATE,
    SEARCH,
    STUCK,
    Choice,
    Criterion,
    Evidence,
    apart,
    choose,
)
from emu.decisions.names import LOSSLESS, TUNED
from emu.decisions.phrases import behind_of, figure, gap, named, share
from emu.decisions.standing import fastest, standings_of
from emu.sensitivities.effect import Effect, effect_of
from emu.tuning.goals import Goal
from emu.units import write_time
from emu.words import listed

if TYPE_CHECKING:
    from emu.decisions.decide import Decided


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
    yield from _by_windows(decided)


def _by_margin(decided: Decided, choice: Choice) -> Iterator[str]:
    """Margins are rounded so that the sentence holds for the number that it has."""
    goal, best = decided.figures.deciding, choice.best
    share_behind = behind_of(best)
    if best is not choice.fastest and best.standing.behind is not None:
        below = floor(1000 * share_behind) / 1000
        other = choose(decided.evidence, goal, below) if below < share_behind else None
        if other is not None and other.best is not best:
            yield f"With a margin of {100 * below:.1f} % or less it would be {_less(other, best)}."
    named = {best.name}
    for own in sorted(_outside(decided, choice), key=behind_of):
        above = ceil(1000 * behind_of(own)) / 1000
        other = choose(decided.evidence, goal, above) if above <= 1 else None
        if other is not None and other.best.name not in named:
            named.add(other.best.name)
            why = _in_favour(other.best, best)
            yield f"With a margin of {100 * above:.1f} % it would be {other.best.name}{why}."


def _in_favour(other: Evidence, best: Evidence) -> str:
    """Why a wider margin would choose another fabric."""
    criterion = apart(other, best)
    if criterion is not PRICE:
        return _FAVOURS.get(criterion, "")
    assert best.bill is not None
    assert other.bill is not None
    saved = best.bill.total - other.bill.total
    return f", which costs {best.bill.money(saved)} less ({share(saved / best.bill.total)})"


_FAVOURS: Mapping[Criterion | None, str] = {
    RATE: ", which has slower links",
    STUCK: ", where flows finish with more of the failures",
    SEARCH: ", which needs no search of settings",
    EFFORT: ", where fewer changes cost much",
}


def _less(other: Choice, best: Evidence) -> str:
    """The fabric that a smaller margin would choose."""
    return f"{other.best.name}, as {best.name} is then too far behind {other.fastest.name}"


def _outside(decided: Decided, choice: Choice) -> list[Evidence]:
    """The candidates that fit, and are outside of the margin."""
    near = {own.name for own in choice.near}
    known = [own for own in decided.evidence.values() if own.standing.behind]
    return [own for own in known if own.standing.fits and own.name not in near]


def _by_price(decided: Decided, choice: Choice) -> Iterator[str]:
    if len(choice.near) < 2:
        return
    best, *others = choice.near
    if best.bill is None:
        yield (
            f"Prices are not known (--prices): {len(choice.near)} fabrics are within the margin, "
            "and the cheapest of them would be recommended."
        )
        return
    priced = [(own.bill.total - best.bill.total, own, own.bill) for own in others if own.bill]
    alike = [own.name for more, own, _ in priced if more == 0]
    if alike:
        yield (
            f"As expensive as {best.name}: {listed(alike)}. The first that cost less would be "
            "recommended."
        )
    dearer = [entry for entry in priced if entry[0] > 0]
    if dearer:
        more, own, bill = min(dearer, key=lambda entry: entry[0])
        yield (
            f"If the price of {own.name} were lower by more than {bill.money(more)} "
            f"({share(more / bill.price)} of it), it would be {own.name}."
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
            f"If the {named(goal)} decided (--by), it would be {other.best.name}: "
            f"{_beside(other, evidence[best.name], goal)}."
        )


def _beside(other: Choice, best: Evidence, goal: Goal) -> str:
    """The figures of the fabric that another figure would choose, and of the recommended one."""
    own = figure(other.best.standing.figure, goal)
    recommended = figure(best.standing.figure, goal)
    criterion = apart(other.best, best)
    is_near = any(each.name == best.name for each in other.near)
    if is_near and criterion is not None:
        return (
            f"{own} there and {recommended} on {best.name} are near each other, and "
            f"{criterion.name} decides"
        )
    return f"{own} there, and {recommended} on {best.name}"


def _by_failures(decided: Decided, choice: Choice) -> Iterator[str]:
    """Failures with which another fabric within the margin is better by more than the margin."""
    best, goal = choice.best, decided.figures.deciding
    for name, (words, what) in _SAID.items():
        own = best.rows_with(name)
        gaps: dict[str, Effect] = {}
        for other in choice.near[1:]:
            effect = effect_of(goal, own, other.rows_with(name))
            if effect.is_shown:
                gaps[other.name] = effect
        least = max(gaps, key=lambda each: gaps[each].mean, default=None)
        if least is not None and gaps[least].mean > decided.setup.request.margin:
            yield (
                f"If what happens when a {words} decided, one {what} at one time, it would be "
                f"{least}: then the "
                f"{named(goal)} on {best.name} is {gap(gaps[least])} than on {least}."
            )


_SAID = {
    "link fails": ("link fails", "cable"),
    "switch fails": ("switch fails", "switch"),
    "no subnet manager": ("link fails without a subnet manager", "cable"),
}


def _by_size(decided: Decided, choice: Choice) -> Iterator[str]:
    goal, best = decided.figures.deciding, choice.best
    for grown in decided.growth:
        own, mark = grown.standings[best.name], fastest(grown.standings, goal)
        if not grown.size.settings or mark is None or own.is_near(decided.setup.request.margin):
            continue
        why = listed(own.faults)
        if own.fits and own.behind is not None:
            why = f"its {named(goal)} is {gap(own.behind)}"
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
    effect = effect_of(goal, plain.standing.rows, best.standing.rows)
    if effect.shares:
        how = gap(effect) if effect.is_shown else "not shown to differ"
        yield f"Without its settings ({name}), the {named(goal)} is {how}."


def _by_switches(decided: Decided) -> Iterator[str]:
    """Assumptions about switches that differ between the fabrics."""
    found: dict[str, list[str]] = {}
    for own in decided.evidence.values():
        spec = own.candidate.spec
        switch = next(iter(spec.topology.build().switch))
        how = "cut-through" if spec.cuts_through(switch) else "store-and-forward"
        latency = write_time(spec.switch_latency(switch)[0])
        found.setdefault(f"{latency}, {how}", []).append(own.name)
    if len(found) > 1:
        each = listed([f"{words} on {listed(names)}" for words, names in found.items()])
        yield (
            f"Switches are assumed to be different: {each}. Give switches.latency and "
            "switches.switching if those that you compare are not."
        )


def _by_windows(decided: Decided) -> Iterator[str]:
    """Fabrics on which a queue pair may not have as much in flight as on others."""
    limited: list[str] = []
    free: list[str] = []
    for own in decided.evidence.values():
        spec = own.candidate.spec
        nics = [spec.host(name).nic for name in spec.topology.build().host]
        is_limited = any(nic.has_window_of_path for nic in nics)
        (limited if is_limited else free).append(own.name)
    if limited and free:
        yield (
            f"On {listed(limited)}, a queue pair has at most the bandwidth-delay product of its "
            f"path in flight, as comes with the recovery there; on {listed(free)} there is no such "
            "limit. It keeps queues short, also without losses. Give hosts.nic.window if your NICs "
            "have the same on all."
        )
