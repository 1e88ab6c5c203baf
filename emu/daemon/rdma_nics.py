"""The NICs of a lab's hosts as sysfs shows them: what they are, and what they have counted.

                 InfiniBand                        RoCE
data, packets    the switch port, sent and         the NIC process: RDMA alone, as mlx5
                 received swapped: all NICs
link downs       the switch port                   the switch port
everything else  the NIC process                   the NIC process
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from emu.daemon.nics import Nics
from emu.fabric_kind import Framing
from emu.lab import ib0
from emu.lab.nic_process import port_counters
from emu.lab.rdma_sysfs.counters import (
    NOTHING,
    HostCounters,
    hw_counters,
    pma_counters,
)
from emu.lab.rdma_sysfs.nic import Nic, PortState, ethernet_nic, infiniband_nic
from emu.lab.session import Session
from emu.measure.counters import XMIT_WAIT
from emu.measure.seqlock import SharedCounters
from emu.subnet.diagnostics import ACROSS

CountersOf = Callable[[str], HostCounters | None]
"""What a host has counted up to now; None: not known, so that what was known before stays."""

_ONLINE_CPUS = Path("/sys/devices/system/cpu/online")
_LINK_DOWNED = "LinkDownedCounter"


class RdmaNics:
    """The NICs of all hosts. Any thread may call it."""

    def __init__(self, session: Session, counters_of_host: CountersOf) -> None:
        self._session = session
        self._topology = session.spec.topology.build()
        self._counters_of_host = counters_of_host
        self._counted: dict[str, HostCounters] = {}

    def nic(self, host: str) -> Nic:
        """What does not change about the NIC of a host."""
        spec, subnet = self._session.spec, self._session.subnet
        cpus = _ONLINE_CPUS.read_text().strip()
        if subnet is None:
            return ethernet_nic(self._topology, host, cpus)
        return infiniband_nic(
            spec,
            self._topology,
            host,
            cpus,
            lid=subnet.now.lids[host],
            runs_manager=host in subnet.managers,
            interface=ib0.NAME if self._session.plan.ib0 else None,
        )

    def state(self, host: str) -> PortState:
        """What changes about it."""
        subnet = self._session.subnet
        counted = self._counters_of_host(host)
        if counted is not None:
            self._counted[host] = counted
        return PortState(
            up=self._is_up(host),
            sm_lid=subnet.now.lids[subnet.master] if subnet else 0,
            counters=self._counted.get(host, NOTHING),
        )

    def _is_up(self, host: str) -> bool:
        """Whether a host's cable works, as far as the lab's routing knows."""
        routing = self._session.subnet or self._session.routing
        changes = routing.links.entries if routing else ()
        own = self._topology.cable[self._topology.ports[host][0]]
        down = changes[-1].down if changes else ()
        return own not in {self._topology.cable[self._topology.port_named[name]] for name in down}


class LabCounters:
    """What hosts have counted, from the shared memory of the shim and of the NIC processes."""

    def __init__(self, session: Session, nics: Nics, switch_ports: int) -> None:
        """`switch_ports`: the open file of the shim's counters."""
        layout = session.shim_ready.counters
        assert layout is not None
        self._kind = session.spec.fabric_kind
        self._topology = session.spec.topology.build()
        self._nics = nics
        self._switch_ports = SharedCounters(os.dup(switch_ports), layout)

    def __call__(self, host: str) -> HostCounters:
        row = self._nics.row_of(host)
        if not row:
            return HostCounters(self._seen_by_switch(host), {})
        own = pma_counters(port_counters(row), self._kind.framing)
        own[XMIT_WAIT] = row[XMIT_WAIT][0]
        return HostCounters({**own, **self._seen_by_switch(host)}, hw_counters(row))

    def _seen_by_switch(self, host: str) -> dict[str, int]:
        """The counters of a host's port that the other end of its cable knows."""
        topology = self._topology
        far = topology.peer[topology.ports[host][0]]
        row = self._switch_ports.read_row(topology.port_name[far])
        named = pma_counters(row, self._kind.framing)
        seen = {_LINK_DOWNED: named[_LINK_DOWNED]}
        if self._kind.framing is Framing.INFINIBAND:
            seen |= {name: named[across] for name, across in ACROSS.items()}
        return seen
