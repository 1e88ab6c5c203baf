"""The service levels that NICs and queue pairs of a lab use, and the note about them.

Queue pairs keep the levels that they got when they connected, also after a sweep. Old and new
levels together may form a credit loop; a note reports what the mix means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from emu.subnet.routing_check import KeptLevels
from emu.subnet.subnet import PathSLs


class LevelsInUse:
    """All levels that NICs and queue pairs may use."""

    def __init__(self, first: PathSLs, notes: list[str]) -> None:
        """`notes`: the lab's notes; this object adds and removes its own."""
        self._in_use = [first]
        self._notes = notes
        self._replaceable = ""
        """The note about the latest levels. A note about a credit loop is never replaced."""

    def replace_all(self) -> None:
        """Forgets all levels, because all NICs are replaced."""
        self._in_use = []
        self._remove_note()

    def add(self, levels: PathSLs) -> None:
        """Adds the levels that a new NIC or queue pair uses."""
        if levels not in self._in_use:
            self._in_use.append(levels)

    def update_note(self, kept_levels: Callable[[Sequence[PathSLs]], KeptLevels | None]) -> None:
        """Replaces the note by the verdict on the levels in use after a sweep."""
        self._remove_note()
        in_use = [levels for levels in self._in_use if levels]
        kept = kept_levels(in_use) if in_use else None
        if kept and kept.note not in self._notes:
            self._notes.append(kept.note)
            self._replaceable = "" if kept.credit_loop else kept.note

    def _remove_note(self) -> None:
        with suppress(ValueError):  # there is none
            self._notes.remove(self._replaceable)
