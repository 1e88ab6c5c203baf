"""The steps that build a lab: a printable, comparable list that `build` carries out.

    namespace   its interfaces
    lab         leaf1-eth1 …      ports of the Open vSwitch bridges (plane `ovs` only)
    shim        leaf1-eth1 …      their other ends
                h1-eth0 …         the hosts' other ends
    h1          h1-eth0           the host's NIC
                ib0               on InfiniBand: its interface for IP (`ib0.py`)

    h1 [h1-eth0]═══[h1-eth0] shim, all cables inside [leaf1-eth1]═══[leaf1-eth1] bridge leaf1

A namespace has the name of its process. Links, addresses and routes are steps of `net_steps`.

The bridge's end of a veth keeps a MAC address of its own: with the port's address the lab's kernel
would consider routed frames its own and process each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from emu._core import lib
from emu.lab import ib0, management_network
from emu.lab.marker.marker import MarkedPort
from emu.lab.marker.red import Red
from emu.lab.net_steps import (
    AddAddress,
    AddDefaultRoute,
    AddNeighbour,
    AddVeth,
    NetStep,
    SetUp,
)
from emu.lab.ovs import bridge_transaction
from emu.lab.routes import RouteTable
from topologies.graph import Host, Port, Topology

MTU = 4200
"""The MTU of the interfaces in bytes: a 4096-byte RDMA payload with all headers fits."""
GATEWAY = "169.254.0.1"
"""Every host's next hop: its leaf switch, whose MAC address is a static neighbour."""

LAB = "lab"
SHIM = "shim"
OVS = "ovs"


@dataclass(frozen=True)
class AddHost:
    """A namespace for a host, which is also a Mininet host."""

    name: str
    ip: str
    interface: str = ""
    """Its interface for IP; empty if an AddCable step names it."""


@dataclass(frozen=True)
class AddSystem:
    """A namespace for the operating system of a switch."""

    switch: str


@dataclass(frozen=True)
class AddSwitch:
    """A Mininet switch. StartSwitches makes its bridge."""

    name: str
    dpid: int


@dataclass(frozen=True)
class AddNamespace:
    """A namespace that is no node of Mininet's."""

    name: str
    hosts: str
    """The file that is /etc/hosts there."""


@dataclass(frozen=True)
class AddCable:
    """A Mininet link between two ports."""

    a: Port
    b: Port


@dataclass(frozen=True)
class NoIpv6:
    """Disables IPv6, so that the kernel does not send packets of its own."""

    namespace: str


@dataclass(frozen=True)
class OffloadsOff:
    """Turns off offloads: every frame on these interfaces is one packet, with checksums."""

    namespace: str
    interfaces: tuple[str, ...]


@dataclass(frozen=True)
class HoldUdpPort:
    """A socket that drops everything, so that the kernel does not answer "port unreachable"."""

    namespace: str
    port: int


@dataclass(frozen=True)
class LoadFirewall:
    """Loads a ruleset of nftables in a namespace."""

    namespace: str
    ruleset: str


@dataclass(frozen=True)
class WatchLinks:
    """Starts to watch links in a namespace that go down."""

    namespace: str


@dataclass(frozen=True)
class WatchRoutes:
    """Starts to watch the default routes of hosts."""

    hosts: tuple[str, ...]


@dataclass(frozen=True)
class StartSwitches:
    """Starts Open vSwitch with the bridges and ports of this transaction."""

    transaction: tuple[str, ...]
    punctual: bool
    """It runs before all other processes and stays in memory: real time passes."""


@dataclass(frozen=True)
class LoadRoutes:
    """Loads the OpenFlow tables of all switches."""

    tables: tuple[RouteTable, ...]


@dataclass(frozen=True)
class AttachMarker:
    """Attaches the eBPF marker to the bridges' ports."""

    ports: tuple[MarkedPort, ...]
    at_join: bool = False
    """Whether the shim runs it instead, on each frame that joins a queue; it is then loaded for the
    shim's interfaces and not attached."""


@dataclass(frozen=True)
class PlaceRed:
    """Adds the kernel's RED, below a token bucket, to the bridges' ports."""

    ports: tuple[Red, ...]


Step = (
    AddHost
    | AddSystem
    | AddSwitch
    | AddNamespace
    | AddCable
    | NoIpv6
    | NetStep
    | OffloadsOff
    | HoldUdpPort
    | LoadFirewall
    | WatchLinks
    | WatchRoutes
    | StartSwitches
    | LoadRoutes
    | AttachMarker
    | PlaceRed
)


def port_indexes(topology: Topology) -> dict[Port, int]:
    """The index of every switch port, from 0: its row in the marker's map of queue depths."""
    return {port: index for index, port in enumerate(topology.switch_ports)}


def plan_nodes(
    topology: Topology, *, bridges: bool, infiniband: bool = False, systems: bool = False
) -> list[Step]:
    """The steps for Mininet's nodes. Mininet knows switches and cables only with `bridges`.
    `systems`: whether each switch has an operating system of its own."""
    steps: list[Step] = []
    if systems:
        steps += [AddSystem(switch.name) for switch in topology.switches]
    for host in topology.hosts:
        own = ib0.NAME if infiniband else topology.ports[host.name][0].interface
        steps.append(AddHost(host.name, str(host.ip), "" if bridges else own))
    if bridges:
        steps += [AddSwitch(switch.name, switch.index) for switch in topology.switches]
        steps += [AddCable(cable.a, cable.b) for cable in topology.cables]
    return steps


def plan_network(
    topology: Topology,
    *,
    datapath: str | None,
    ip: bool,
    routes: Sequence[RouteTable],
    ib0_mtu: int | None = None,
    punctual: bool = True,
    quick_ack: bool = False,
    management: bool = False,
) -> list[Step]:
    """The steps for interfaces, addresses and bridges. The nodes and the shim must exist.

    `datapath`: Open vSwitch's datapath type; None: no bridges. `ip`: whether the hosts'
    ports have addresses and routes; on InfiniBand they have none. `ib0_mtu`: the MTU of
    the hosts' ib0; None: no ib0. `routes`: the bridges' tables. `punctual`: as in StartSwitches.
    `quick_ack`: whether the hosts' TCP acknowledges every segment at once. An acknowledgement that
    it delays by 40 ms of real time would come at any emulated time. `management`: whether there is
    a management network.
    """
    hosts = [topology.ports[host.name][0] for host in topology.hosts]
    bridged = [] if datapath is None else list(port_indexes(topology))
    namespaces = (LAB, SHIM, *(host.name for host in topology.hosts))
    steps: list[Step] = [NoIpv6(namespace) for namespace in namespaces]
    steps.append(SetUp(LAB, "lo"))
    steps += _bridges_network(bridged)
    for host in topology.hosts:
        steps += _host_network(topology, host, ip=ip, quick_ack=quick_ack)
        if ib0_mtu is not None:
            steps += ib0.steps_of(host, ib0_mtu)
    if management:
        steps += management_network.steps_of(topology, LAB, ipoib=not ip)
    steps += [SetUp(SHIM, port.interface) for port in hosts + bridged]
    steps.append(OffloadsOff(LAB, _interfaces(bridged)))
    steps.append(OffloadsOff(SHIM, _interfaces(hosts + bridged)))
    steps += [OffloadsOff(port.node, (port.interface,)) for port in hosts]
    if ip:
        steps += [HoldUdpPort(host.name, lib.ROCE_UDP_PORT) for host in topology.hosts]
        steps.append(WatchRoutes(tuple(host.name for host in topology.hosts)))
    steps.append(WatchLinks(SHIM))
    if datapath is not None:
        steps.append(StartSwitches(tuple(bridge_transaction(topology, datapath)), punctual))
        steps.append(LoadRoutes(tuple(routes)))
    return steps


def _bridges_network(bridged: list[Port]) -> Iterator[NetStep]:
    for port in bridged:
        yield AddVeth(LAB, port.interface, SHIM, MTU)
    for port in bridged:
        yield SetUp(LAB, port.interface)


def _host_network(
    topology: Topology, host: Host, *, ip: bool, quick_ack: bool
) -> Iterator[NetStep]:
    """The steps for a host. With `ip` it has a /32 address, and its leaf switch as gateway."""
    port = topology.ports[host.name][0]
    name, interface = host.name, port.interface
    yield AddVeth(name, interface, SHIM, MTU, port.mac)
    yield SetUp(name, "lo")
    yield SetUp(name, interface)
    if ip:
        yield AddAddress(name, interface, str(host.ip), 32)
        yield AddNeighbour(name, interface, GATEWAY, topology.peer[port].mac)
        yield AddDefaultRoute(name, interface, GATEWAY, quick_ack)


def _interfaces(ports: list[Port]) -> tuple[str, ...]:
    return tuple(port.interface for port in ports)
