"""Counters of many ports or hosts, as a page shows them.

A few ports stand side by side. Each shows every counter that any port of the run moved, even
where its own is 0, so that differences between ports are visible. For many ports there is one
table with the sum of each counter and the port that has the most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, compress

from emu.measure.records import Counters
from emu.report.table import Cell, Column, Table

MOST_SIDE_BY_SIDE = 64


@dataclass(frozen=True)
class CountersView:
    """Either `by_name` or `summed` is filled."""

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
        note="The summary lists each of them.",
    )


def _numbers(*values: int) -> tuple[Cell, ...]:
    return tuple(Cell(f"{value:,}") for value in values)
