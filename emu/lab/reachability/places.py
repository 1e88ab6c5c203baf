"""The places between which reachability is measured, and what the spec allows.

    h1            a host on the fabric          h1-mgmt0, leaf1-mgmt0   agents
    leaf1         a switch in which FRR runs    mgmt                    the collector
    switches      where Open vSwitch runs       mgmt_switch             the management switch
    cables        where the shim runs

Each is a network namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from emu.bgp.numbering import loopback
from emu.lab.out_of_band.network import INTERFACE, Network, agent_of
from emu.lab.plan import LAB, SHIM
from emu.spec import management
from emu.spec.management_names import COLLECTOR, SWITCH

FABRIC, MANAGEMENT = "fabric", "management"
HOSTS, SWITCHES, AGENTS = "hosts", "switches, cables", "agents"
RAW = "raw"
"""A broadcast Ethernet frame of an EtherType for experiments."""
ICMP = "icmp"
_PROBED = (ICMP, "tcp/22", "udp/161", "udp/514")
"""Services that are probed between planes and in the management network, whether the spec allows
them or not."""
_IN_FABRIC = (ICMP, "tcp/22", "udp/161")
_ROCE = "udp/4791"
"""The fabric takes such packets for a NIC's, so no host may send them."""


@dataclass(frozen=True)
class Place:
    """Where packets are sent from, or to."""

    name: str
    plane: str
    task: int
    """A process or thread in its network namespace."""
    kind: str
    """The group of places that it is in, for people."""
    of_node: str = ""
    """The host or switch that it belongs to; empty: none."""
    node: str = ""
    """The member of the management network that it is; empty: none."""
    address: str = ""
    """Empty: it has none."""
    is_quiet: bool = False
    """Whether it must send no frames of its own: Open vSwitch and the shim would take them for the
    fabric's, and the management switch's own port is nobody's."""


class Cell(NamedTuple):
    """A source, a target and a service."""

    source: str
    target: str
    service: str


def places_of(network: Network, pids: Mapping[str, int], *, ip: bool) -> list[Place]:
    """All places of a lab. `pids`: a process or thread in each namespace. `ip`: whether hosts have
    IP on the fabric."""
    places = [
        Place(
            host.name, FABRIC, pids[host.name], HOSTS, host.name, address=str(host.ip) if ip else ""
        )
        for host in network.topology.hosts
    ]
    for switch in network.topology.switch:
        if switch in pids:  # it has an operating system, and a loopback address
            own = str(loopback(network.topology, switch))
            place = Place(switch, FABRIC, pids[switch], SWITCHES, switch, "", own, is_quiet=True)
            places.append(place)
    places += [
        Place("switches", FABRIC, pids[LAB], SWITCHES, is_quiet=True),
        Place("cables", FABRIC, pids[SHIM], SWITCHES, is_quiet=True),
    ]
    for node, address in network.addresses.items():
        is_agent = node != COLLECTOR
        name, kind = (f"{node}-{INTERFACE}", AGENTS) if is_agent else (node, COLLECTOR)
        of_node = node if is_agent else ""
        task = pids[agent_of(node)]
        places.append(Place(name, MANAGEMENT, task, kind, of_node, node, address))
    return [*places, Place(SWITCH, MANAGEMENT, pids[SWITCH], SWITCH, is_quiet=True)]


def expected_cells(network: Network, places: Sequence[Place], *, fabric: bool) -> dict[Cell, bool]:
    """Every cell to measure, and whether the spec allows it. `fabric`: those between hosts on the
    fabric, too."""
    return {
        Cell(source.name, target.name, service): allowed
        for source in places
        for target in places
        if source is not target
        for service, allowed in _between(network, source, target, fabric=fabric)
    }


def _between(
    network: Network, source: Place, target: Place, *, fabric: bool
) -> Iterator[tuple[str, bool]]:
    """The services from one place to another, and whether each is allowed."""
    if source.plane != target.plane:
        yield from ((service, False) for service in _across(network, source, target))
    elif source.plane == FABRIC:
        if fabric and source.address and source.kind == target.kind == HOSTS and target.address:
            yield from ((service, True) for service in _IN_FABRIC)
    elif source.node and target.node:
        yield from _in_management(network, source.node, target.node)


def _across(network: Network, source: Place, target: Place) -> Iterator[str]:
    if target.address:
        services = _services(network)
        yield from services if source.plane == MANAGEMENT else services - {_ROCE}
    if not source.is_quiet:
        yield RAW


def _in_management(network: Network, source: str, target: str) -> Iterator[tuple[str, bool]]:
    joined = bool({source, target} & network.open_ports)
    for service in _services(network):
        if network.settings.firewall:
            yield service, management.Cell(source, target, service) in network.cells
        else:
            yield service, joined
    yield RAW, joined and not network.settings.firewall


def _services(network: Network) -> frozenset[str]:
    return frozenset({*_PROBED, *(cell.service for cell in network.cells)})
