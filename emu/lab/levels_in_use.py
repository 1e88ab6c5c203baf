"""Service levels that NICs and queue pairs of a lab have, and the note about them.

Queue pairs keep the levels that they got when they connected, also after a sweep. Old and new
levels together may form a credit loop; a note reports what the mix means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from emu.subnet.routing_check import KeptLevels
from emu.subnet.subnet import PathSLs


class LevelsInUse:
    """All levels that NICs and queue pairs may have."""

    def __init__(self, first: PathSLs, notes: list[str]) -> None:
        """`notes`: of the lab; one of them is changed here."""
        self._in_use = [first]
        self._notes = notes
        self._replaceable = ""
        """The note about the latest levels. A note about a credit loop is never replaced."""

    def replace_all(self) -> None:
        """All NICs are replaced: no levels are in use."""
        self._in_use = []
        self._remove_note()

    def add(self, levels: PathSLs) -> None:
        """A NIC or queue pair got these."""
        if levels not in self._in_use:
            self._in_use.append(levels)

    def note(self, judge: Callable[[Sequence[PathSLs]], KeptLevels | None]) -> None:
        """Notes the verdict on the levels in use, after a sweep."""
        self._remove_note()
        in_use = [levels for levels in self._in_use if levels]
        kept = judge(in_use) if in_use else None
        if kept and kept.note not in self._notes:
            self._notes.append(kept.note)
            self._replaceable = "" if kept.circle else kept.note

    def _remove_note(self) -> None:
        with suppress(ValueError):  # there is none
            self._notes.remove(self._replaceable)
