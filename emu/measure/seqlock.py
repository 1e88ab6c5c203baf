"""Counters in memory that others can read while the one who counts goes on.

A table of 64-bit numbers, a row for each port or host, behind two cells of its own:

    edition | time_ps | row 0 ... | row 1 ... | ...

The writer makes the edition odd, writes, and makes it even; a reader takes its
copy again when the edition has changed meanwhile. Nobody waits for anybody.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_CELL = 8
_EDITION, _TIME, _HEAD = 0, 1, 2

Columns = Sequence[tuple[str, int]]
"""The name of each counter, and how many cells it has."""
Rows = dict[str, dict[str, list[int]]]
"""Row -> counter -> its cells."""


class Board:
    """A board, for its one writer or for a reader."""

    def __init__(self, file: int, rows: Sequence[str], columns: Columns) -> None:
        """`file` is open and becomes the board's."""
        self.file = file
        self._rows = tuple(rows)
        self._columns = [(name, width) for name, width in columns]
        self._width = sum(width for _, width in columns)
        self._memory = mmap.mmap(file, self._size())
        self._cells: NDArray[np.int64] = np.frombuffer(self._memory, np.int64)

    @classmethod
    def new(cls, rows: Sequence[str], columns: Columns) -> Self:
        file = os.memfd_create("board")
        cells = _HEAD + len(rows) * sum(width for _, width in columns)
        os.truncate(file, cells * _CELL)
        return cls(file, rows, columns)

    @property
    def legend(self) -> dict[str, Any]:
        """What a reader must know, as JSON: `Board(file, **legend)`."""
        return {"rows": self._rows, "columns": self._columns}

    def close(self) -> None:
        del self._cells
        self._memory.close()
        os.close(self.file)

    # ---- writing -----------------------------------------------------------

    def begin(self, time_ps: int) -> NDArray[np.int64]:
        """Begins an edition; returns the cells to write, (rows, cells of a row)."""
        self._cells[_EDITION] += 1
        self._cells[_TIME] = time_ps
        return self._cells[_HEAD:].reshape(len(self._rows), self._width)

    def publish(self) -> None:
        """Ends the edition that was begun."""
        self._cells[_EDITION] += 1

    # ---- reading -----------------------------------------------------------

    def read(self) -> tuple[int, Rows]:
        """The time, in ps, and everything that was counted by then."""
        while True:
            copy = self._cells.copy()
            if copy[_EDITION] % 2 == 0 and copy[_EDITION] == self._cells[_EDITION]:
                break
        table = copy[_HEAD:].reshape(len(self._rows), self._width)
        rows = zip(self._rows, table.tolist(), strict=True)
        return int(copy[_TIME]), {name: self._named(cells) for name, cells in rows}

    def _named(self, cells: list[int]) -> dict[str, list[int]]:
        left = iter(cells)
        return {name: [next(left) for _ in range(width)] for name, width in self._columns}

    def _size(self) -> int:
        return (_HEAD + len(self._rows) * self._width) * _CELL
