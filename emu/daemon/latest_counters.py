"""The counters of the latest workload, which every snapshot shows.

A workload that begins replaces the counters of the one before, which are closed then. A client may
ask at that moment: it gets copies of the open files, of one workload or of the other.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from dataclasses import dataclass

from emu.lab.nic_process import NicProcess
from emu.measure.seqlock import Layout


@dataclass(frozen=True)
class Copies:
    """Open files of the caller, in the order of `hosts`, `flows`; none before any workload."""

    files: list[int]
    hosts: Layout | None = None
    flows: Layout | None = None


class LatestCounters:
    """Of at most one workload. Any thread may call it."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._nics: NicProcess | None = None

    def replace(self, nics: NicProcess) -> None:
        """Shows these from now on. Those before are closed."""
        with self._changing:
            before, self._nics = self._nics, nics
            if before is not None:
                before.close_counters()

    def copy(self) -> Copies:
        """Raises OSError, with no file left open, when one cannot be copied."""
        with self._changing:
            if self._nics is None:
                return Copies([])
            hosts, flows = self._nics.hosts, self._nics.flows
            return Copies(_copies(hosts.file, flows.file), hosts.layout, flows.layout)


def _copies(*files: int) -> list[int]:
    copies = []
    with ExitStack() as on_error:
        for file in files:
            copies.append(os.dup(file))
            on_error.callback(os.close, copies[-1])
        on_error.pop_all()
    return copies
