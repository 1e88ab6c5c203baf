"""Checks of counters.

lossless   drops of a priority, over all ports
counter    one counter, added up over ports and hosts
agreement  one counter against another
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from emu.measure.counter_table import PORT, WATCHDOG, with_number
from emu.measure.recording import Recording
from emu.measure.records import Counters
from emu.report.verdict.outcome import Outcome
from emu.spec.model import Agreement, Counter, Lossless


def lossless(check: Lossless, run: Recording) -> Outcome:
    """Counts all drops: by switches, watchdogs, lost links, faults on cables and NICs that receive
    damaged packets. On InfiniBand, packets of all virtual lanes count."""
    drops = _sum(run, PORT.by_name["dropped"].public_names(run.fabric_kind.framing), check.priority)
    watchdog = PORT.public_drops(run.fabric_kind.framing, PORT.drops(WATCHDOG))
    by_watchdog = _sum(run, watchdog, check.priority)
    if check.excused == "watchdog":
        return Outcome(drops == by_watchdog, _dropped(drops - by_watchdog, by_watchdog, "plus"))
    return Outcome(drops == 0, _dropped(drops, by_watchdog, "of which"))


def _dropped(packets: int, by_watchdog: int, how: str) -> str:
    text = f"{packets:,} packets dropped"
    return f"{text}, {how} {by_watchdog:,} by the PFC watchdog" if by_watchdog else text


def _sum(run: Recording, counters: Iterable[str], priority: int) -> int:
    """The sum of these counters over all ports and hosts. `counters`: public names, with N for the
    priority."""
    names = [with_number(name, priority) for name in counters]
    places = (*run.ports.values(), *run.hosts.values())
    return sum(own.get(name, 0) for own in places for name in names)


def counter(check: Counter, run: Recording) -> Outcome:
    counts = list(_counts(check.name, check.at, run))
    if not counts:
        return _uncounted(check.name)
    return Outcome(check.allow(sum(counts), run.clock), f"{sum(counts):,}")


def agreement(check: Agreement, run: Recording) -> Outcome:
    ones = list(_counts(check.name, check.at, run))
    others = list(_counts(check.like, check.like_at, run))
    if not ones or not others:
        return _uncounted(check.like if ones else check.name)
    one, other = sum(ones), sum(others)
    return Outcome(abs(one - other) <= check.within * other, f"{one:,} and {other:,}")


def _uncounted(name: str) -> Outcome:
    return Outcome(False, f"this run has no counter {name}")


def _counts(name: str, at: tuple[str, ...], run: Recording) -> Iterator[int]:
    return (counters[name] for counters in _counters(at, run) if name in counters)


def _counters(at: tuple[str, ...], run: Recording) -> Iterator[Counters]:
    places = run.ports | run.hosts
    if at == ("all",):
        yield from places.values()
    for place in at:
        if place == "total":
            yield run.totals
        yield from (own for name, own in places.items() if name.partition(":")[0] == place)
        if ":" in place and place in places:
            yield places[place]
