"""A fabric's routes as OpenFlow: one table per switch, one flow per host.

What a router does to a packet, in OpenFlow's words:

    match   its destination is this host (ip, nw_dst=10.0.0.5/32)
    action  decrement the TTL; set the destination MAC to the next hop's port;
            output, or a group when there are several next hops

A group is `select` with a hash over addresses and UDP ports, so that all packets
of a flow take one path. The source MAC carries the shim's transit tag: nothing
here may match, hash or change it. All that is not IPv4 to a known host is
dropped: ARP (neighbours are static), IPv6, and pause frames, which end in the shim.

Left out: ICMP time exceeded and unreachable; a lost packet is just lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from topologies.graph import Port, Switch, Topology
from topologies.seeds import ecmp_seed

_ROUTE_PRIORITY = 100
_HASHED = "fields(ip_src,ip_dst,udp_src,udp_dst)"


@dataclass(frozen=True)
class Hop:
    """A way out of a switch: its port, and the MAC address at the other end."""

    port: int
    mac: str

    def actions(self) -> str:
        return f"set_field:{self.mac}->eth_dst,output:{self.port}"


@dataclass(frozen=True)
class Group:
    """Equal next hops. OpenFlow numbers groups from 1."""

    id: int
    seed: int
    """Of the hash, 64 bits."""
    hops: tuple[Hop, ...]

    def line(self) -> str:
        """The group as a line of an `ovs-ofctl bundle`. A bucket's id is its port number."""
        buckets = (f"bucket=bucket_id:{hop.port},actions={hop.actions()}" for hop in self.hops)
        method = f"selection_method=hash,selection_method_param={self.seed},{_HASHED}"
        return f"group add group_id={self.id},type=select,{method},{','.join(buckets)}"


@dataclass(frozen=True)
class Route:
    """How a switch forwards packets to one host."""

    destination: IPv4Address
    via: Hop | Group

    def line(self) -> str:
        """The route as a line of an `ovs-ofctl bundle`."""
        way = self.via.actions() if isinstance(self.via, Hop) else f"group:{self.via.id}"
        match = f"priority={_ROUTE_PRIORITY},ip,nw_dst={self.destination}/32"
        return f"flow add {match},actions=dec_ttl,{way}"


@dataclass(frozen=True)
class RouteTable:
    """All that a switch does."""

    switch: str
    groups: tuple[Group, ...]
    routes: tuple[Route, ...]

    def lines(self) -> Iterator[str]:
        """The table as the lines of one `ovs-ofctl bundle`."""
        for group in self.groups:
            yield group.line()
        for route in self.routes:
            yield route.line()
        yield "flow add priority=0,actions=drop"


def route_tables(topology: Topology, seed: int) -> list[RouteTable]:
    """The table of every switch; `seed` is the fabric's."""
    return [_table(topology, switch, ecmp_seed(seed, switch)) for switch in topology.switches]


def _table(topology: Topology, switch: Switch, seed: int) -> RouteTable:
    next_hops = topology.next_hops[switch.name]
    groups: dict[tuple[Port, ...], Group] = {}
    for ports in next_hops.values():
        if len(ports) > 1 and ports not in groups:
            groups[ports] = Group(len(groups) + 1, seed, _hops(topology, ports))
    routes = (
        Route(topology.host[host].ip, groups.get(ports) or _hops(topology, ports)[0])
        for host, ports in next_hops.items()
    )
    return RouteTable(switch.name, tuple(groups.values()), tuple(routes))


def _hops(topology: Topology, ports: Sequence[Port]) -> tuple[Hop, ...]:
    return tuple(Hop(port.number, topology.peer[port].mac) for port in ports)
