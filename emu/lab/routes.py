"""A fabric's routes as OpenFlow: one table per switch, one flow per host.

What a router does to a packet, in OpenFlow's words:

    match   its destination is this host (ip, nw_dst=10.0.0.5/32)
    action  decrement the TTL; set the destination MAC to the next hop's port;
            output, or a group when there are several next hops

A group is `select` with a hash over addresses and UDP ports, so that all packets
of a flow take one path. Before it come flows that choose a next hop otherwise:

    pinned     a flow by its addresses and UDP source port
    hinted     what OpenFlow cannot know (queues, gaps, queue pairs, links lost at a
               time to come) the shim does, and hints at the port in the fourth byte
               of its transit tag

The tag is in the source MAC: nothing else here may match, hash or change that. All
that is not IPv4 to a known host is dropped: ARP (neighbours are static), IPv6, and
pause frames, which end in the shim.

Left out: ICMP time exceeded and unreachable; a lost packet is just lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from emu.spec.outages import Rerouting, is_hinted, reroutings
from emu.spec.pinning import pins_of
from emu.spec.scenario import Spec
from topologies.graph import Port, Topology
from topologies.seeds import ecmp_seed

_ROUTE_PRIORITY, _CHOSEN_PRIORITY = 100, 200
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
class Chosen:
    """A next hop for packets that are not left to a group's hash."""

    match: str
    hop: Hop

    def line(self) -> str:
        """The flow as a line of an `ovs-ofctl bundle`."""
        actions = f"dec_ttl,{self.hop.actions()}"
        return f"flow add priority={_CHOSEN_PRIORITY},{self.match},actions={actions}"


@dataclass(frozen=True)
class RouteTable:
    """All that a switch does."""

    switch: str
    groups: tuple[Group, ...]
    routes: tuple[Route, ...]
    chosen: tuple[Chosen, ...] = ()

    def lines(self) -> Iterator[str]:
        """The table as the lines of one `ovs-ofctl bundle`."""
        rows: tuple[Group | Route | Chosen, ...] = (*self.groups, *self.routes, *self.chosen)
        for row in rows:
            yield row.line()
        yield "flow add priority=0,actions=drop"


def route_tables(spec: Spec) -> list[RouteTable]:
    """The table of every switch, good for the whole run."""
    changes = reroutings(spec)
    return [
        _table(spec, name, [change for change in changes if change.switch == name])
        for name in spec.topology.build().switch
    ]


def _table(spec: Spec, switch: str, changes: Sequence[Rerouting]) -> RouteTable:
    topology = spec.topology.build()
    next_hops = topology.next_hops[switch]
    seed = ecmp_seed(spec.switch(switch).routing.seed_of(spec.seed), topology.switch[switch])
    groups: dict[tuple[Port, ...], Group] = {}
    for ports in next_hops.values():
        if len(ports) > 1 and ports not in groups:
            groups[ports] = Group(len(groups) + 1, seed, _hops(topology, ports))
    routes = (
        Route(topology.host[host].ip, groups.get(ports) or _hops(topology, ports)[0])
        for host, ports in next_hops.items()
    )
    hinted = is_hinted(spec, switch, changes)
    chosen = _hinted(topology, switch, changes) if hinted else _pinned(spec, switch)
    return RouteTable(switch, tuple(groups.values()), tuple(routes), tuple(chosen))


def _pinned(spec: Spec, switch: str) -> Iterator[Chosen]:
    """Flows with a path of their own."""
    topology = spec.topology.build()
    for pin in pins_of(spec, switch):
        src, dst = topology.host[pin.src].ip, topology.host[pin.dst].ip
        match = f"udp,nw_src={src},nw_dst={dst},udp_src={pin.udp_source}"
        yield Chosen(match, _hops(topology, (pin.port,))[0])


def _hinted(topology: Topology, switch: str, changes: Sequence[Rerouting]) -> Iterator[Chosen]:
    """Every port that may ever be the next hop to a host, where there are several."""
    for host, ports in topology.next_hops[switch].items():
        later = (port for change in changes for port in change.changes.get(host, ()))
        ever = tuple(dict.fromkeys((*ports, *later)))
        for hop in _hops(topology, ever) if len(ever) > 1 else ():
            hint = f"dl_src=06:00:00:{hop.port:02x}:00:00/ff:00:00:ff:00:00"
            yield Chosen(f"ip,nw_dst={topology.host[host].ip}/32,{hint}", hop)


def _hops(topology: Topology, ports: Sequence[Port]) -> tuple[Hop, ...]:
    return tuple(Hop(port.number, topology.peer[port].mac) for port in ports)
