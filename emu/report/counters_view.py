"""Counters of many ports or hosts, as a page shows them.

A few stand side by side, each with all counters that anything in the run moved, also where
they are 0: what one port lacks is seen beside the others. Of many there is one table, with
the sum of each counter and who has most of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, compress

from emu.measure.recording import Counters
from emu.report.table import Cell, Column, Table

MOST_SIDE_BY_SIDE = 64


@dataclass(frozen=True)
class CountersView:
    """Either `by_name` or `summed` has what there is to see."""

    title: str
    by_name: Mapping[str, Counters]
    summed: Table


def counters_view(title: str, counters: Mapping[str, Counters]) -> CountersView:
    """`counters` by port or host."""
    moved = (compress(own, own.values()) for own in counters.values())
    used = list(dict.fromkeys(chain.from_iterable(moved)))
    few = len(counters) <= MOST_SIDE_BY_SIDE
    by_name = {who: {name: own.get(name, 0) for name in used} for who, own in counters.items()}
    return CountersView(title, by_name if few else {}, _summed([] if few else used, by_name))


def _summed(names: list[str], by_name: Mapping[str, Counters]) -> Table:
    rows = []
    for name in names:
        most = max(by_name, key=lambda who: by_name[who][name])
        total = sum(own[name] for own in by_name.values())
        rows.append((Cell(name), *_numbers(total, by_name[most][name]), Cell(most)))
    columns = Column("counter", numeric=False), Column("sum"), Column("most")
    return Table(
        title=f"{len(by_name)} together",
        columns=(*columns, Column("at", numeric=False)),
        rows=tuple(rows),
        note="The summary has them one by one.",
    )


def _numbers(*values: int) -> tuple[Cell, ...]:
    return tuple(Cell(f"{value:,}") for value in values)
