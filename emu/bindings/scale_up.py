"""The fabric inside servers in the C core: a small InfiniBand fabric besides the network.

In a lab all of it is in the process of the NICs: traffic within a server crosses no network
interface.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emu._core import ffi, lib
from emu.bindings.port_config import FRAME_BYTES, FRAMINGS
from emu.bindings.switch_config import FORWARDINGS
from emu.errors import FabricError
from emu.fabric_kind import SCALE_UP
from emu.spec.queue_discipline import QUEUES
from emu.spec.scale_up import ScaleUp
from topologies.graph import Host, Port, Topology

LANES = 1


class ScaleUpFabric:
    """The switches, cables and NICs of the scale-up fabric. Its port indices follow those of the
    network."""

    def __init__(
        self,
        core: Any,
        topology: Topology,
        links: ScaleUp,
        first_index: int,
        part_of: Callable[[str], int],
        is_here: Callable[[str], bool],
    ) -> None:
        """`part_of`: the number of a host's part; `is_here`: whether this process runs it. Both are
        the same for all GPUs of a server."""
        self._core = core
        self._part_of = part_of
        self._is_here = is_here
        self._topology = topology
        self._links = links
        self._index = {port: first_index + place for place, port in enumerate(ports_of(topology))}
        self._with_nic: set[Port] = set()
        for switch in topology.switches:
            ports = topology.ports[switch.name]
            if is_here(topology.peer[ports[0]].node):
                self._add_switch(ports)

    def add_nic(self, host: Host, config: Any) -> Any:
        """Adds the NIC of a GPU's links (a `struct nic *`), from a `struct nic_config *`."""
        config.address = host.index
        (port,) = self._topology.ports[host.name]
        self._set_port(config.port, port)
        part = self._part_of(host.name)
        nic = lib.fabric_add_nic(self._core, part, self._index[port], config)
        if not nic:
            raise FabricError("the servers' fabric does not fit into memory; make it smaller")
        self._with_nic.add(port)
        return nic

    def add_far_nic(self, host: Host) -> None:
        """Another process adds the NIC."""
        self._with_nic.update(self._topology.ports[host.name])

    def connect(self) -> None:
        """Connects the cables of the GPUs whose NICs were added in this process."""
        for cable in self._topology.cables:
            if cable.b not in self._with_nic or not self._is_here(cable.b.node):
                continue
            ends = self._index[cable.a], self._index[cable.b]
            lib.fabric_connect(self._core, *ends, cable.rate_bps, cable.delay_ps)

    @property
    def ports(self) -> dict[str, int]:
        """The ports of connected cables, in this or another process: name -> index."""
        name = self._topology.port_name
        there = self._with_nic | {self._topology.peer[port] for port in self._with_nic}
        return {name[port]: index for port, index in self._index.items() if port in there}

    def _add_switch(self, ports: list[Port]) -> None:
        config = ffi.new("struct switch_config *")
        config.ports = len(ports)
        config.forwarding = FORWARDINGS[SCALE_UP.forwarding]
        config.latency_ps = self._links.latency_ps
        config.cut_through = SCALE_UP.cuts_through
        config.arbiter.quantum = [FRAME_BYTES] * QUEUES
        configs = ffi.new("struct switch_port_config[]", len(ports))
        for own, port in zip(configs, ports, strict=True):
            self._set_port(own.port, port)
            own.queue_of = list(range(QUEUES))
        part = self._part_of(self._topology.peer[ports[0]].node)
        switch = lib.fabric_add_switch(self._core, part, self._index[ports[0]], config, configs)
        if switch == ffi.NULL:
            raise FabricError("the servers' fabric does not fit into memory; make it smaller")
        for port in ports:
            gpu = self._topology.host[self._topology.peer[port].node]
            lib.switch_add_routes(switch, [gpu.index], 1, [port.number], 1)

    def _set_port(self, config: Any, port: Port) -> None:
        """Fills in a `struct port_config`. All service levels use the only lane."""
        config.framing = FRAMINGS[SCALE_UP.framing]
        config.flow_control = lib.FLOW_CONTROL_CREDITS
        config.credit.vls = LANES
        config.credit.width = self._topology.cable[port].width
        config.credit.buffer_bytes = [self._links.buffer_bytes] * LANES


def ports_of(topology: Topology) -> list[Port]:
    """All ports: those of switches first, each node's in a row."""
    return [port for node in topology.nodes for port in topology.ports[node.name]]
