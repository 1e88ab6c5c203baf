"""The nodes, addresses and links of the management network.

    172.16.0.5      host 5          172.16.255.1    the collector
    172.16.128.2    switch 2

All are in 172.16.0.0/16, so nothing needs a route.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address

from emu.lab.namespace import PRIVATE
from emu.lab.net_steps import (
    AddAddress,
    AddBridge,
    AddVeth,
    IsolatePort,
    NetStep,
    SetBridge,
    SetUp,
)
from emu.spec.management import Cell, Management
from emu.spec.management_names import COLLECTOR, NODES, SWITCH
from topologies.graph import Topology

INTERFACE = "mgmt0"
BRIDGE = SWITCH
MTU = 1500
PREFIX_BITS = 16
FOLDER = PRIVATE / "management"
"""Files for the programs of the management network."""
HOSTS = FOLDER / "hosts"
"""What /etc/hosts is there."""

_NETWORK = int(IPv4Address("172.16.0.0"))
_SWITCHES, _COLLECTOR = 128 << 8, 255 << 8 | 1


def agent_of(node: str) -> str:
    """The namespace of a node's agent."""
    return node if node in NODES else f"{node} agent"


@dataclass(frozen=True)
class Network:
    """The management network of a fabric."""

    topology: Topology
    settings: Management

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """All hosts and switches."""
        return (*self.topology.host, *self.topology.switch)

    @cached_property
    def members(self) -> tuple[str, ...]:
        """The nodes and the collector: all that have an address here."""
        return (*self.nodes, COLLECTOR)

    @cached_property
    def addresses(self) -> dict[str, str]:
        """Member -> its address."""
        hosts = {host.name: host.index for host in self.topology.hosts}
        switches = {switch.name: _SWITCHES + switch.index for switch in self.topology.switches}
        own = hosts | switches | {COLLECTOR: _COLLECTOR}
        return {name: str(IPv4Address(_NETWORK + number)) for name, number in own.items()}

    @cached_property
    def cells(self) -> frozenset[Cell]:
        """Who may begin to talk to whom."""
        return self.settings.cells(self.nodes)

    @cached_property
    def open_ports(self) -> frozenset[str]:
        """Members whose port of the bridge is not isolated: the collector, and nodes that may talk
        to each other. The kernel forwards no frame between isolated ports."""
        pairs = ((cell.source, cell.target) for cell in self.cells)
        others = {node for pair in pairs if COLLECTOR not in pair for node in pair}
        return frozenset({COLLECTOR, *others})

    @property
    def namespaces(self) -> tuple[str, ...]:
        return (SWITCH, *map(agent_of, self.members))

    def hosts_file(self) -> str:
        """The lines for /etc/hosts: the name of a node leads to its agent."""
        lines = (f"{own} {name} {name}-{INTERFACE}\n" for name, own in self.addresses.items())
        return "".join(lines)

    def net_steps(self) -> Iterator[NetStep]:
        """The steps that connect all members. The namespaces must exist."""
        yield AddBridge(SWITCH, BRIDGE, snooping=False)
        yield SetUp(SWITCH, BRIDGE)
        for name in self.members:
            yield AddVeth(agent_of(name), INTERFACE, SWITCH, MTU, peer_interface=name)
        for name in self.members:
            yield SetBridge(SWITCH, name, BRIDGE)
        for name in self.members:
            if name not in self.open_ports:
                yield IsolatePort(SWITCH, name)
        for name in self.members:
            yield SetUp(SWITCH, name)
        for name, address in self.addresses.items():
            yield SetUp(agent_of(name), "lo")
            yield SetUp(agent_of(name), INTERFACE)
            yield AddAddress(agent_of(name), INTERFACE, address, PREFIX_BITS)
