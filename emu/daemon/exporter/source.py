"""What a lab has counted up to now, read from shared memory."""

from __future__ import annotations

import threading
import time

from emu.daemon.client import receive_answer
from emu.daemon.exporter.messages import GetCounters
from emu.errors import FabricError
from emu.lab.ipc.channel import Channel
from emu.lab.nic_process import is_of_port, port_counters
from emu.measure.counter_layout import Layout
from emu.measure.seqlock import Rows, SharedCounters
from emu.report.metrics import Seen
from topologies.graph import Topology

_SECONDS_OF_USE = 0.1
"""Counters in shared memory are renewed five times a second, so older ones are read again."""


class Source:
    """The counters of a lab. Several threads may use it: what one has read serves the others."""

    def __init__(self, lab: Channel, topology: Topology) -> None:
        self._lab = lab
        self._topology = topology
        self._reading = threading.Lock()
        self._seen: Seen | None = None
        self._read_at = 0.0

    def seen(self) -> Seen:
        """What was counted, 0.3 s ago at most. Raises FabricError if the lab has ended."""
        with self._reading:
            now = time.monotonic()
            if self._seen is None or now - self._read_at > _SECONDS_OF_USE:
                self._seen, self._read_at = self._read(), now
            return self._seen

    def _read(self) -> Seen:
        query = GetCounters()
        try:
            self._lab.send(query)
            answer = receive_answer(self._lab, query)
        except EOFError:
            raise FabricError("the lab has ended") from None
        ports, *others = self._lab.take_files()
        time_ps, rows = _rows(ports, answer.ports)
        own: Rows = {}
        for file in others:
            assert answer.hosts is not None
            _, own = _rows(file, answer.hosts)
        return Seen(
            time_ps=time_ps,
            ports=rows,
            host_ports={self._port_of(host): port_counters(row) for host, row in own.items()},
            hosts={
                host: {name: cells[0] for name, cells in row.items() if not is_of_port(name)}
                for host, row in own.items()
            },
            down=frozenset(answer.down),
        )

    def _port_of(self, host: str) -> str:
        return self._topology.port_name[self._topology.ports[host][0]]


def _rows(file: int, layout: Layout) -> tuple[int, Rows]:
    """The emulated time in picoseconds, and the rows. Closes the file."""
    counters = SharedCounters(file, layout)
    try:
        return counters.read()
    finally:
        counters.close()
