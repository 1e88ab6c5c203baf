"""A fabric's routes as OpenFlow tables: one table for each switch, one flow for each host.

A router's forwarding, as OpenFlow matches and actions:

    match   its destination is this host (ip, nw_dst=10.0.0.5/32)
    action  decrement the TTL; set the destination MAC to the next hop's port;
            output, or a group when there are several next hops

A group is `select` with a hash over addresses and UDP ports, so that all packets
of a flow take one path. Flows of higher priority choose the next hop differently:

    pinned     a flow by its addresses and UDP source port
    hinted     where the choice depends on what OpenFlow cannot match (queue depths,
               gaps between packets, queue pairs, links that will be lost), the shim
               chooses and writes the port to the fourth byte of its transit tag

When links change in an interactive lab, the tables are updated (`change_lines`,
`emu.lab.openflow_tables`); until then the shim's hints replace them.

The tag is in the source MAC: no other flow may match, hash or change it. Packets that are not IPv4
to a known host are dropped, for example ARP (neighbours are static) and IPv6. Pause frames end in
the shim.

Left out: ICMP time exceeded and unreachable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from emu.bindings.source_ports import source_ports
from emu.spec.pinning import pins_of
from emu.spec.rerouting import MAX_HINTED_PORTS, is_hinted, reroutings
from emu.spec.scenario import Spec
from topologies.graph import Port
from topologies.seeds import ecmp_seed

_ROUTE_PRIORITY, _PINNED_PRIORITY, _HINTED_PRIORITY = 100, 200, 300
_HASHED = "fields(ip_src,ip_dst,udp_src,udp_dst)"
_BACK = "load:0->NXM_OF_IN_PORT[]"
"""Allows a packet to leave at the port at which it came in, which Open vSwitch would drop: when a
link is lost, the way on may lead back. Source: ovs-actions(7), on `output`."""


@dataclass(frozen=True)
class Hop:
    """An output port of a switch, and the MAC address at the other end of its cable."""

    port: int
    mac: str

    def actions(self) -> str:
        return f"set_field:{self.mac}->eth_dst,{_BACK},output:{self.port}"


@dataclass(frozen=True)
class Group:
    """Equal-cost next hops. OpenFlow numbers groups from 1."""

    id: int
    seed: int
    """The hash's seed, 64 bits."""
    hops: tuple[Hop, ...]

    def line(self) -> str:
        """The group as a line of an `ovs-ofctl bundle`. A bucket's id is its port number.

        A hop that is there twice gets twice the flows.
        """
        buckets = (
            f"bucket=bucket_id:{hop.port}{_weight(count)},actions={hop.actions()}"
            for hop, count in Counter(self.hops).items()
        )
        method = f"selection_method=hash,selection_method_param={self.seed},{_HASHED}"
        return f"group add group_id={self.id},type=select,{method},{','.join(buckets)}"


def _weight(count: int) -> str:
    return f",weight:{count}" if count > 1 else ""


@dataclass(frozen=True)
class Route:
    """How a switch forwards packets to one host."""

    destination: IPv4Address
    via: Hop | Group

    def line(self) -> str:
        """The route as a line of an `ovs-ofctl bundle`."""
        way = self.via.actions() if isinstance(self.via, Hop) else f"group:{self.via.id}"
        return f"flow add {self.match},actions=dec_ttl,{way}"

    @property
    def match(self) -> str:
        return f"priority={_ROUTE_PRIORITY},ip,nw_dst={self.destination}/32"


@dataclass(frozen=True)
class Chosen:
    """A next hop for packets that bypass a group's hash."""

    match: str
    """The match of the flow, with its priority."""
    hop: Hop

    def line(self) -> str:
        """The flow as a line of an `ovs-ofctl bundle`."""
        return f"flow add {self.match},actions=dec_ttl,{self.hop.actions()}"


@dataclass(frozen=True)
class RouteTable:
    """The OpenFlow table of a switch, and its groups."""

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


NextHops = Mapping[str, tuple[Port, ...]]
"""Host -> the ports of a switch towards it; none: unreachable."""
GroupIds = dict[tuple[Port, ...], int]
"""Next hops -> the number of their group at a switch."""


def route_tables(spec: Spec, *, live: bool = False) -> list[RouteTable]:
    """The tables of all switches. `live`: for an interactive lab before any link changes; otherwise
    for a whole run."""
    changes = () if live else reroutings(spec)
    topology = spec.topology.build()
    return [
        route_table(
            spec,
            name,
            topology.next_hops[name],
            {},
            hinted=live or is_hinted(spec, name, [c for c in changes if c.switch == name]),
        )
        for name in topology.switch
    ]


def route_table(
    spec: Spec, switch: str, next_hops: NextHops, ids: GroupIds, *, hinted: bool
) -> RouteTable:
    """A switch's table with these next hops to hosts.

    Groups that are not in `ids` yet are added there. `hinted`: whether the shim may choose.
    """
    topology = spec.topology.build()
    next_hops = {host: ports for host, ports in next_hops.items() if ports}
    seed = ecmp_seed(spec.switch(switch).routing.seed_of(spec.seed), topology.switch[switch])
    groups: dict[tuple[Port, ...], Group] = {}
    for ports in next_hops.values():
        if len(set(ports)) > 1 and ports not in groups:
            number = ids.setdefault(ports, len(ids) + 1)
            groups[ports] = Group(number, seed, _hops(spec, ports))
    routes = (
        Route(topology.host[host].ip, groups.get(ports) or _hops(spec, ports)[0])
        for host, ports in next_hops.items()
    )
    chosen = [*_pinned(spec, switch, next_hops), *(_hinted(spec, switch) if hinted else ())]
    return RouteTable(switch, tuple(groups.values()), tuple(routes), tuple(chosen))


def change_lines(before: RouteTable, after: RouteTable) -> Iterator[str]:
    """The lines of a bundle that changes one table into another. Flows that a user added stay."""
    for group in after.groups:
        if group not in before.groups:
            yield group.line()
    for old, new in ((before.routes, after.routes), (before.chosen, after.chosen)):
        kept = {row.match for row in new}
        yield from (row.line() for row in new if row not in old)
        yield from (f"flow delete_strict {row.match}" for row in old if row.match not in kept)
    for group in before.groups:
        if group not in after.groups:
            yield f"group delete group_id={group.id}"


def _pinned(spec: Spec, switch: str, next_hops: NextHops) -> Iterator[Chosen]:
    """The pinned flows whose path is one of the next hops."""
    topology = spec.topology.build()
    for pin in pins_of(spec, switch, source_ports):
        if pin.port not in next_hops.get(pin.dst, ()):
            continue
        src, dst = topology.host[pin.src].ip, topology.host[pin.dst].ip
        match = f"udp,nw_src={src},nw_dst={dst},udp_src={pin.udp_source}"
        yield Chosen(f"priority={_PINNED_PRIORITY},{match}", _hops(spec, (pin.port,))[0])


def _hinted(spec: Spec, switch: str) -> Iterator[Chosen]:
    """A flow for every port that the shim can hint. Without a hint that byte of the tag is 0."""
    for hop in _hops(spec, spec.topology.build().ports[switch]):
        if hop.port <= MAX_HINTED_PORTS:
            hint = f"ip,dl_src=06:00:00:{hop.port:02x}:00:00/ff:00:00:ff:00:00"
            yield Chosen(f"priority={_HINTED_PRIORITY},{hint}", hop)


def _hops(spec: Spec, ports: Sequence[Port]) -> tuple[Hop, ...]:
    """The next hops at these ports, in the topology without lost links, which has all peers."""
    peer = spec.topology.build().peer
    return tuple(Hop(port.number, peer[port].mac) for port in ports)
