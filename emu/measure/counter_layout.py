"""Where counters are in the shared memory of a lab (`emu.measure.seqlock`)."""

from __future__ import annotations

from dataclasses import dataclass

CELL_BYTES = 8
HEAD = 2
"""Cells before the first row: the sequence number, and the time."""


@dataclass(frozen=True)
class Layout:
    """What a reader must know of the table."""

    rows: tuple[str, ...]
    columns: tuple[tuple[str, int], ...]

    @property
    def width(self) -> int:
        """The cells of a row."""
        return sum(width for _, width in self.columns)

    @property
    def size_bytes(self) -> int:
        return (HEAD + len(self.rows) * self.width) * CELL_BYTES
