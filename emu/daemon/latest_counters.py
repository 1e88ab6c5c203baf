"""The counters of the latest workload, for snapshots.

A new workload replaces the counters of the one before, which are closed then. A client that takes a
snapshot at that moment gets copies of the open files of either workload.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from dataclasses import dataclass

from emu.lab.nic_process import NicProcess
from emu.measure.counter_layout import Layout


@dataclass(frozen=True)
class Copies:
    """Open files in the order `hosts`, `flows`, which the caller must close; none before the first
    workload and the first verbs program."""

    files: list[int]
    hosts: Layout | None = None
    flows: Layout | None = None


class LatestCounters:
    """The counters of at most one workload. Any thread may call it."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._nics: NicProcess | None = None

    def replace(self, nics: NicProcess) -> None:
        """Closes the counters before, and copies these from now on."""
        with self._changing:
            before, self._nics = self._nics, nics
            if before is not None:
                before.close_counters()

    def copy(self, of_programs: NicProcess | None = None) -> Copies:
        """Copies of the open files. `of_programs`: NICs that serve verbs programs, whose hosts are
        shown in place of the workload's. Raises OSError if a file cannot be copied; none stays
        open."""
        with self._changing:
            nics, workload = of_programs or self._nics, self._nics or of_programs
            if nics is None or workload is None:
                return Copies([])
            hosts, flows = nics.hosts, workload.flows
            return Copies(_copies(hosts.file, flows.file), hosts.layout, flows.layout)


def _copies(*files: int) -> list[int]:
    copies = []
    with ExitStack() as on_error:
        for file in files:
            copies.append(os.dup(file))
            on_error.callback(os.close, copies[-1])
        on_error.pop_all()
    return copies
