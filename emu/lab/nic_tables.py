"""The counters of a NIC process and of its workload in shared memory, for snapshots of a lab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from emu.bindings.fabric import Fabric
from emu.lab.ipc.setup import NicsReady
from emu.lab.nic_process import FLOW_COLUMNS, PORT_COLUMNS
from emu.measure.counter_table import NIC
from emu.measure.counters import XMIT_WAIT
from emu.measure.seqlock import SharedCounters
from traffic.graph import Flow


class CountedNics(Protocol):
    """NICs and flows with counters."""

    @property
    def flows(self) -> Sequence[Flow]: ...

    def post_counters(self, cells: NDArray[np.int64]) -> None:
        """Copies the counters of the NICs into a table of shape (hosts, counters)."""

    def post_flows(self, cells: NDArray[np.int64]) -> None:
        """Writes the progress of all flows into a table of shape (flows, FLOW_COLUMNS)."""


class NicTables:
    """A row for each host, and one for each flow."""

    def __init__(self, fabric: Fabric, endpoints: CountedNics) -> None:
        self._fabric = fabric
        self._endpoints = endpoints
        self._hosts = SharedCounters.new(
            list(fabric.topology.host), [*NIC.cells.items(), (XMIT_WAIT, 1), *PORT_COLUMNS]
        )
        self._flows = SharedCounters.new([flow.name for flow in endpoints.flows], FLOW_COLUMNS)

    @property
    def layouts(self) -> NicsReady:
        return NicsReady(self._hosts.layout, self._flows.layout)

    @property
    def files(self) -> list[int]:
        return [self._hosts.file, self._flows.file]

    def post(self) -> None:
        """Copies the present counters of all NICs and flows."""
        now_ps = self._fabric.now_ns * 1000
        cells = self._hosts.begin(now_ps)
        self._endpoints.post_counters(cells[:, : len(NIC.cells)])
        topology = self._fabric.topology
        ports = [topology.ports[name][0] for name in topology.host]
        cells[:, len(NIC.cells)] = self._fabric.waited_ns(ports)
        self._fabric.post_counters(cells[:, len(NIC.cells) + 1 :], ports)
        self._hosts.publish()
        self._endpoints.post_flows(self._flows.begin(now_ps))
        self._flows.publish()
