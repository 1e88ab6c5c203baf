"""Counters in shared memory: one process writes them, others read them, and no process waits.

A table of 64-bit numbers, a row for each port or host, behind two cells of its own:

    sequence | time_ps | row 0 ... | row 1 ... | ...

This is a sequence lock. The writer makes the sequence number odd, writes, and makes it even. A
reader repeats its copy if the number was odd or has changed meanwhile. A writer that was killed or
stopped in the middle would leave it odd, so a reader gives up after a while.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from emu.errors import FabricError
from emu.measure.counter_layout import HEAD, Layout

_SEQUENCE, _TIME = 0, 1
"""The cells before the first row."""
_SECONDS_TO_READ = 2.0
"""A writer needs some microseconds, unless it must wait for a processor."""

Columns = Sequence[tuple[str, int]]
"""The name of each counter, and how many cells it has."""
Row = dict[str, list[int]]
"""Counter -> its cells."""
Rows = dict[str, Row]


@dataclass(frozen=True)
class Copy:
    """All cells of a table at one moment. A row is cut out when it is asked for: with thousands of
    rows that takes most of the time."""

    layout: Layout
    cells: NDArray[np.int64]

    @property
    def time_ps(self) -> int:
        return int(self.cells[_TIME])

    def row(self, name: str) -> Row:
        """Raises ValueError if there is no such row."""
        width = self.layout.width
        first = HEAD + self.layout.rows.index(name) * width
        return _named(self.layout, self.cells[first : first + width].tolist())


class SharedCounters:
    """A table of counters, for its one writer or for a reader."""

    def __init__(self, file: int, layout: Layout) -> None:
        """`file` is an open file; `close` closes it."""
        self.file = file
        self.layout = layout
        self._memory = mmap.mmap(file, layout.size_bytes)
        self._cells: NDArray[np.int64] = np.frombuffer(self._memory, np.int64)

    @classmethod
    def new(cls, rows: Sequence[str], columns: Columns) -> Self:
        layout = Layout(tuple(rows), tuple(columns))
        file = os.memfd_create("counters")
        os.truncate(file, layout.size_bytes)
        return cls(file, layout)

    def close(self) -> None:
        del self._cells
        self._memory.close()
        os.close(self.file)

    # ---- writing -----------------------------------------------------------

    def begin(self, time_ps: int) -> NDArray[np.int64]:
        """Begins a write. Returns the cells to fill, in the shape (rows, cells of a row)."""
        self._cells[_SEQUENCE] += 1
        self._cells[_TIME] = time_ps
        return self._cells[HEAD:].reshape(len(self.layout.rows), self.layout.width)

    def publish(self) -> None:
        """Ends the writing: readers see the new numbers from now on."""
        self._cells[_SEQUENCE] += 1

    # ---- reading -----------------------------------------------------------

    def read(self) -> tuple[int, Rows]:
        """The time, in ps, and everything that was counted by then. Raises FabricError if the
        writer has ended, or was stopped, in the middle of writing."""
        copy = self._copy()
        table = copy[HEAD:].reshape(len(self.layout.rows), self.layout.width)
        rows = zip(self.layout.rows, table.tolist(), strict=True)
        return int(copy[_TIME]), {name: _named(self.layout, cells) for name, cells in rows}

    def read_row(self, name: str) -> Row:
        """One row: much faster than all of them. Raises ValueError if there is no such row, and
        FabricError as `read`."""
        return self.copy().row(name)

    def copy(self) -> Copy:
        """Everything that was counted by now. Raises FabricError as `read`."""
        return Copy(self.layout, self._copy())

    def _copy(self) -> NDArray[np.int64]:
        """All cells at one moment."""
        end = 0.0
        while True:
            copy = self._cells.copy()
            if copy[_SEQUENCE] % 2 == 0 and copy[_SEQUENCE] == self._cells[_SEQUENCE]:
                return copy
            end = end or time.monotonic() + _SECONDS_TO_READ
            if time.monotonic() > end:
                raise FabricError(
                    "counters cannot be read: the process that writes them stopped while it did"
                )


def _named(layout: Layout, cells: list[int]) -> Row:
    left = iter(cells)
    return {name: [next(left) for _ in range(width)] for name, width in layout.columns}
