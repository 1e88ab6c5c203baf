"""The boards of the latest workload, which whoever asks may look at.

A workload that begins puts its boards in the place of the one before, whose boards are closed
then. Somebody may ask at that moment: they get copies of the open files, of one workload or
of the other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import ExitStack

from emu.lab.ipc.messages import Json
from emu.lab.nic_process import NicProcess


class ShownBoards:
    """Those of at most one workload. Any thread may call it."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._nics: NicProcess | None = None

    def show(self, nics: NicProcess) -> None:
        """These from now on. Those before are closed."""
        with self._changing:
            before, self._nics = self._nics, nics
            if before is not None:
                before.close_boards()

    def look(self) -> tuple[Json, list[int]]:
        """Their legends, and copies of their files, which are the caller's; none yet: no files."""
        with self._changing:
            if self._nics is None:
                return {"hosts": None, "flows": None}, []
            boards = {"hosts": self._nics.board, "flows": self._nics.flows}
            legends = {name: board.legend for name, board in boards.items()}
            return legends, _copies(board.file for board in boards.values())


def _copies(files: Iterable[int]) -> list[int]:
    """All, or none where one cannot be made: OSError."""
    copies = []
    with ExitStack() as unless_all:
        for file in files:
            copies.append(os.dup(file))
            unless_all.callback(os.close, copies[-1])
        unless_all.pop_all()
    return copies
