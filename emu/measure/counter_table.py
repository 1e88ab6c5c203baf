"""The core's tables of counters (emu/core/counters): each counter, its public names, what it means.

Everything else about counters reads them from here: values of ports and NICs, drops, notes. A new
counter is a row of a table in C, and an increment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from emu._core import ffi, lib
from emu.fabric_kind import Framing

CLASSES = {Framing.ETHERNET: lib.PRIORITIES, Framing.INFINIBAND: lib.CLASSES}
"""Priorities, and virtual lanes."""
CONGESTION, LOSSLESS, WATCHDOG, OTHER = (
    lib.DROP_CONGESTION,
    lib.DROP_LOSSLESS,
    lib.DROP_WATCHDOG,
    lib.DROP_OTHER,
)
"""Kinds of drops: see `enum counter_drop`."""


@dataclass(frozen=True)
class Counter:
    """A row of a table; emu/core/counters/counter.h explains the fields."""

    name: str
    """In the core; empty for a public name that is computed from other counters."""
    roce: tuple[str, ...]
    ib: tuple[str, ...]
    unit: str
    per_unit: int
    meaning: str
    event: str
    source: int
    drop: int
    fault: int
    level: bool
    cells: int

    @property
    def is_drop(self) -> bool:
        """Whether the counted packets ended here."""
        return self.drop != int(lib.NOT_A_DROP)

    def public_names(self, framing: Framing) -> tuple[str, ...]:
        """On links of a framing. N stands for a priority or a virtual lane."""
        return self.roce if framing is Framing.ETHERNET else self.ib


@dataclass(frozen=True)
class Table:
    """All counters of a port, or of a NIC."""

    rows: tuple[Counter, ...]

    @cached_property
    def cells(self) -> dict[str, int]:
        """Each counter that the core counts, and how many cells it has, in the core's order."""
        return {row.name: row.cells for row in self.rows if row.name}

    @cached_property
    def by_name(self) -> dict[str, Counter]:
        """Name in the core -> its row."""
        return {row.name: row for row in self.rows if row.name}

    @cached_property
    def levels(self) -> frozenset[str]:
        """Counters in the core whose values do not add up over time."""
        return frozenset(row.name for row in self.rows if row.name and row.level)

    @cached_property
    def public_levels(self) -> frozenset[str]:
        """Such counters by their public names on every framing, with all numbers for N."""
        levels = [row for row in self.rows if row.level]
        return frozenset(
            name
            for framing in Framing
            for row in levels
            for name in numbered(row.public_names(framing), framing)
        )

    @cached_property
    def events(self) -> tuple[Counter, ...]:
        """Counters of which an increment is an event."""
        return tuple(row for row in self.rows if row.event)

    def drops(self, *kinds: int, injected: bool = True) -> tuple[Counter, ...]:
        """Counters of packets that the fabric dropped, of these kinds or all. Those that faults of
        the spec caused are left out unless `injected`."""
        others = (
            {lib.FAULT_OF_MACHINE} if injected else {lib.FAULT_OF_MACHINE, lib.FAULT_OF_INJECTION}
        )
        drops = (row for row in self.rows if row.is_drop and row.fault not in others)
        return tuple(row for row in drops if not kinds or row.drop in kinds)

    @cached_property
    def machine_losses(self) -> tuple[Counter, ...]:
        """Counters of packets that the emulating machine lost; the real fabric would not have."""
        return tuple(row for row in self.rows if row.fault == lib.FAULT_OF_MACHINE)

    @cached_property
    def described(self) -> dict[Framing, dict[str, Counter]]:
        """Framing -> public name -> the row that describes it, in the order of reports."""
        return {framing: self._described(framing) for framing in Framing}

    def _described(self, framing: Framing) -> dict[str, Counter]:
        own_rows = {name for row in self.rows if not row.name for name in row.public_names(framing)}
        return {
            name: row
            for row in self.rows
            for name in row.public_names(framing)
            if not row.name or name not in own_rows
        }

    @cached_property
    def terms(self) -> dict[Framing, dict[str, tuple[Counter, ...]]]:
        """Framing -> public name -> the counters that it adds up; none where it is computed in
        another way."""
        return {
            framing: {name: self._counted_as(name, framing) for name in self.described[framing]}
            for framing in Framing
        }

    def _counted_as(self, name: str, framing: Framing) -> tuple[Counter, ...]:
        return tuple(row for row in self.rows if row.name and name in row.public_names(framing))

    def public_drops(self, framing: Framing, rows: Iterable[Counter]) -> tuple[str, ...]:
        """Public names on a framing that count these drops, and drops alone; N is the class."""
        wanted = set(rows)
        return tuple(
            name
            for name, terms in self.terms[framing].items()
            if wanted.intersection(terms) and all(row.is_drop for row in terms)
        )


def _read(table: Any) -> Table:
    """`table`: the core's function."""
    count = ffi.new("uint32_t *")
    rows = table(count)
    return Table(tuple(_row(rows[index]) for index in range(count[0])))


def _row(row: Any) -> Counter:
    return Counter(
        name=_text(row.name),
        roce=tuple(_text(row.roce).split()),
        ib=tuple(_text(row.ib).split()),
        unit=_text(row.unit),
        per_unit=row.per_unit or 1,
        meaning=_text(row.meaning),
        event=_text(row.event),
        source=row.source,
        drop=row.drop,
        fault=row.fault,
        level=row.level,
        cells=row.cells,
    )


def _text(chars: Any) -> str:
    return str(ffi.string(chars).decode()) if chars != ffi.NULL else ""


@cache
def indexed(name: str) -> bool:
    """Whether a public name stands for a counter of each priority or virtual lane."""
    return NUMBERED.search(name) is not None


@cache
def with_number(name: str, number: int) -> str:
    """A public name with a number instead of N."""
    return NUMBERED.sub(str(number), name)


def numbered(names: Iterable[str], framing: Framing) -> list[str]:
    """Public names, each with every number that its N stands for."""
    classes = CLASSES[framing]
    return [
        with_number(name, number)
        for name in names
        for number in range(classes if indexed(name) else 1)
    ]


NUMBERED = re.compile(r"(?<![A-Z])N(?![A-Za-z])|(?<=VL)N")
"""The N of a public name that stands for a number."""


PORT = _read(lib.port_counter_table)
NIC = _read(lib.nic_counter_table)
