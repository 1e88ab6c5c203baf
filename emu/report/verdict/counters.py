"""Checks of counters.

lossless   drops of a priority, over all ports
counter    one counter, added up over ports and hosts
agreement  one counter against another
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.measure.recording import Counters, Recording
from emu.report.verdict.outcome import Outcome
from emu.spec.model import Agreement, Counter, Lossless

_DISCARDS = ("rx_prio{}_buf_discard", "tx_prio{}_discards")
"""Counters of a RoCE port: no room in the buffer, and none in the egress queue."""


def lossless(check: Lossless, run: Recording) -> Outcome:
    """InfiniBand has no priorities and drops of none: there everything counts that switches drop,
    be it for want of a route, a lane, a P_Key or credit in time."""
    if run.fabric == "roce":
        names = [name.format(check.priority) for name in _DISCARDS]
        drops = sum(own.get(name, 0) for own in run.ports.values() for name in names)
    else:
        drops = sum(run.totals.get(f"drops_{why}", 0) for why in ("lossless", "lossy", "other"))
    return Outcome(drops == 0, f"{drops:,} packets dropped")


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
    return Outcome(False, f"nothing of this run counts {name}")


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
