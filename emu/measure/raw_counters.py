"""Counters of ports as the core has them: a table, with a row of cells for each port.

A counter has a cell for each class (priority or VL), or a single one. The table is read by
counter, all ports at once, or by port: only then is that port's row cut into counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

RawCounters = Mapping[str, list[int]]
"""Name -> one value per class (priority or VL), or a single one."""


@dataclass(frozen=True, eq=False)
class CounterTable(Mapping[str, RawCounters]):
    """Raw counters by port name."""

    ports: tuple[str, ...]
    widths: Mapping[str, int]
    """Counter -> how many cells it has, in the order of the cells."""
    cells: NDArray[np.int64]
    """(ports, cells of a port)"""

    @classmethod
    def of(cls, ports: Mapping[str, RawCounters]) -> CounterTable:
        """Ports, of the same counters each, as a table."""
        if isinstance(ports, CounterTable):
            return ports
        first = next(iter(ports.values()), {})
        rows = [[cell for name in first for cell in own[name]] for own in ports.values()]
        widths = {name: len(cells) for name, cells in first.items()}
        return cls(tuple(ports), widths, np.array(rows, np.int64))

    @classmethod
    def joined(cls, parts: Iterable[Mapping[str, RawCounters]]) -> CounterTable:
        """The ports of all parts, of which one has some."""
        tables = [cls.of(part) for part in parts if part]
        if len(tables) == 1:
            return tables[0]
        ports = tuple(port for table in tables for port in table)
        return cls(ports, tables[0].widths, np.vstack([table.cells for table in tables]))

    def plus(self, part: Mapping[str, RawCounters]) -> CounterTable:
        """With the counters of some of the ports added."""
        if not part:
            return self
        table, cells = CounterTable.of(part), self.cells.copy()
        cells[[self._rows[port] for port in table]] += table.cells
        return CounterTable(self.ports, self.widths, cells)

    def __getitem__(self, port: str) -> RawCounters:
        row = self.cells[self._rows[port]].tolist()
        return {name: row[place] for name, place in self._places.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self.ports)

    def __len__(self) -> int:
        return len(self.ports)

    def counter(self, name: str) -> NDArray[np.int64]:
        """(ports, cells of the counter)"""
        return self.cells[:, self._places[name]]

    def total(self, name: str) -> int:
        """Of all ports and classes. A port's sum fits into 64 bits, that of all need not."""
        return sum(self.counter(name).sum(axis=1).tolist())

    def only(self, ports: Iterable[str]) -> CounterTable:
        """These of the ports, in this order. Rows that follow each other are not copied."""
        chosen = tuple(ports)
        rows = [self._rows[port] for port in chosen]
        first = rows[0] if rows else 0
        if rows == [*range(first, first + len(rows))]:
            return self.between(first, first + len(rows))
        return CounterTable(chosen, self.widths, self.cells[rows])

    def between(self, first: int, end: int) -> CounterTable:
        """The ports from one row up to, and without, another, as a view."""
        return CounterTable(self.ports[first:end], self.widths, self.cells[first:end])

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {port: row for row, port in enumerate(self.ports)}

    @cached_property
    def _places(self) -> dict[str, slice]:
        ends = np.cumsum([*self.widths.values()]).tolist()
        return {
            name: slice(end - width, end)
            for (name, width), end in zip(self.widths.items(), ends, strict=True)
        }
