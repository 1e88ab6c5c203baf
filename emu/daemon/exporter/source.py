"""What a lab has counted up to now, read from shared memory."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from emu.daemon.exporter.messages import GetCounters
from emu.daemon.session import LabSession
from emu.lab.nic_process import is_of_port, port_counters
from emu.measure.counter_layout import Layout
from emu.measure.seqlock import Copy, SharedCounters
from emu.report.metrics import Seen
from topologies.graph import Topology

_SECONDS_OF_USE = 0.2
"""Counters in shared memory are renewed this often."""


@dataclass(frozen=True)
class _Tables:
    """Everything that a lab had counted at one moment."""

    ports: Copy
    hosts: Copy | None
    down: frozenset[str]


class Source:
    """The counters of a lab. Several threads may use it: what one has read serves the others."""

    def __init__(self, lab: LabSession, topology: Topology) -> None:
        self._lab = lab
        self._topology = topology
        self._reading = threading.Lock()
        self._tables: _Tables | None = None
        self._read_at = 0.0

    def seen(self, node: str) -> Seen:
        """What was counted at a host or switch, 0.4 s of real time ago at most. Raises FabricError
        if the lab has ended."""
        tables, topology = self._present(), self._topology
        names = [topology.port_name[port] for port in topology.ports[node]]
        if node in topology.switch:
            rows = {name: tables.ports.row(name) for name in names}
            return Seen(tables.ports.time_ps, rows, {}, tables.down)
        row = tables.hosts.row(node) if tables.hosts else {}
        own = {name: cells[0] for name, cells in row.items() if not is_of_port(name)}
        rows = {name: port_counters(row) for name in names if row}
        return Seen(tables.ports.time_ps, rows, own, tables.down)

    def _present(self) -> _Tables:
        with self._reading:
            now = time.monotonic()
            if self._tables is None or now - self._read_at > _SECONDS_OF_USE:
                self._tables, self._read_at = self._read(), now
            return self._tables

    def _read(self) -> _Tables:
        answer, (ports, *others) = self._lab.ask(GetCounters())
        hosts = [_copy(file, answer.hosts) for file in others if answer.hosts is not None]
        own = hosts[0] if hosts else None
        return _Tables(_copy(ports, answer.ports), own, frozenset(answer.down))


def _copy(file: int, layout: Layout) -> Copy:
    """The table in an open file, which is closed."""
    counters = SharedCounters(file, layout)
    try:
        return counters.copy()
    finally:
        counters.close()
