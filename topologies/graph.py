"""A fabric as a graph: hosts, switches, and the cables between their ports.

All other parts are built from this plain data: the lab, the fabric on the virtual clock, OpenFlow
routes, ibsim's net file. Names and addresses follow a rule:

    host   hN       10.0.N/256.N%256   MAC 02:00:<its IPv4 address>   port hN-eth0
    switch leafN …                     MAC of port P: 02:01:<switch index>:<P>, 16 bits each
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emu.ib_rates import width_of
from topologies.distance import distances
from topologies.next_hops import NextHops, ShortestPaths
from topologies.stages import Stage, Stages

if TYPE_CHECKING:
    import networkx as nx

HOST_NETWORK = int(IPv4Address("10.0.0.0"))
HOST_NETWORK_PREFIX = "10.0.0.0/8"


@dataclass(frozen=True)
class Host:
    """A server with one NIC. `index` counts from 1 and gives its addresses."""

    name: str
    index: int

    @cached_property
    def ip(self) -> IPv4Address:
        return IPv4Address(HOST_NETWORK + self.index)


@dataclass(frozen=True)
class Switch:
    """A switch; `index` counts from 1. The topology sets `role`: `leaf`, `spine`, ..."""

    name: str
    index: int
    role: str


class Port(NamedTuple):
    """One end of a cable. Switch ports count from 1, a host's only port is 0."""

    node: str
    number: int
    mac: str

    @property
    def interface(self) -> str:
        """Its network interface: `leaf1-eth3`, `h1-eth0`."""
        return f"{self.node}-eth{self.number}"


class Wire(NamedTuple):
    """The rate and delay of a cable."""

    rate_bps: int
    delay_ps: int


@dataclass(frozen=True)
class Cable:
    """A cable: its two ports, rate in bits/s each way, one-way delay in picoseconds."""

    a: Port
    b: Port
    rate_bps: int
    delay_ps: int

    @property
    def width(self) -> int:
        """The number of lanes of an InfiniBand link: 1 for `1x NDR`."""
        return width_of(self.rate_bps)


@dataclass(frozen=True)
class Topology:
    """A whole fabric. No two nodes, hosts or switches, have the same name."""

    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    cables: tuple[Cable, ...]

    @property
    def nodes(self) -> tuple[Host | Switch, ...]:
        """All nodes: switches, then hosts."""
        return (*self.switches, *self.hosts)

    @cached_property
    def host(self) -> dict[str, Host]:
        return {host.name: host for host in self.hosts}

    @cached_property
    def addresses(self) -> dict[str, int]:
        """The low half of each host's address, which identifies it in the core."""
        return {host.name: int(host.ip) & 0xFFFF for host in self.hosts}

    @cached_property
    def switch(self) -> dict[str, Switch]:
        return {switch.name: switch for switch in self.switches}

    @cached_property
    def ports(self) -> dict[str, list[Port]]:
        """The ports of each node, in order of their numbers."""
        ports: dict[str, list[Port]] = {node.name: [] for node in self.nodes}
        for cable in self.cables:
            ports[cable.a.node].append(cable.a)
            ports[cable.b.node].append(cable.b)
        for own in ports.values():
            own.sort(key=lambda port: port.number)
        return ports

    @cached_property
    def peer(self) -> dict[Port, Port]:
        """The port at the other end of each port's cable."""
        return {cable.a: cable.b for cable in self.cables} | {
            cable.b: cable.a for cable in self.cables
        }

    @cached_property
    def cable(self) -> dict[Port, Cable]:
        """The cable in each port."""
        return {port: cable for cable in self.cables for port in (cable.a, cable.b)}

    @cached_property
    def port_name(self) -> dict[Port, str]:
        """The name of each port: `leaf1:h1` is leaf1's port towards h1.

        Of several cables between the same two nodes, the second is `leaf1:spine1#2`.
        """
        names: dict[Port, str] = {}
        for node, ports in self.ports.items():
            seen: dict[str, int] = {}
            for port in ports:
                far = self.peer[port].node
                seen[far] = seen.get(far, 0) + 1
                names[port] = f"{node}:{far}" + (f"#{seen[far]}" if seen[far] > 1 else "")
        return names

    @cached_property
    def switch_ports(self) -> tuple[Port, ...]:
        """The ports of all switches, switch by switch."""
        return tuple(port for name in self.switch for port in self.ports[name])

    @cached_property
    def port_named(self) -> dict[str, Port]:
        return {name: port for port, name in self.port_name.items()}

    @cached_property
    def graph(self) -> nx.MultiGraph:
        """The fabric as a networkx graph: nodes by name, and `cable` on each edge."""
        import networkx as nx  # takes longer to import than most commands run

        graph = nx.MultiGraph()
        graph.add_nodes_from(node.name for node in self.nodes)
        for cable in self.cables:
            graph.add_edge(cable.a.node, cable.b.node, cable=cable)
        return graph

    @cached_property
    def neighbours(self) -> dict[str, list[str]]:
        """The nodes at the far ends of each node's cables, by port."""
        return {
            node: [self.peer[port].node for port in ports] for node, ports in self.ports.items()
        }

    @cached_property
    def roles(self) -> dict[str, tuple[str, ...]]:
        """The tier and the role of each switch, the more general first.

        tier1 has the switches with cables to hosts, tier2 those one cable farther, and so on.
        """
        far = distances(self.neighbours, self.host)
        return {
            switch.name: (
                *((f"tier{far[switch.name]}",) if switch.name in far else ()),
                switch.role,
            )
            for switch in self.switches
        }

    @cached_property
    def next_hops(self) -> dict[str, dict[str, tuple[Port, ...]]]:
        """switch -> host -> its ports on a shortest path to that host, lowest number first.

        A host that cannot be reached has no entry. For fabrics of a lab's size: it has an entry for
        each switch and host. `next_hops_of` has the same by leaf.
        """
        return {switch: self.hops_of(switch, self.host) for switch in self.switch}

    def hops_of(self, switch: str, hosts: Iterable[str]) -> dict[str, tuple[Port, ...]]:
        """Host -> the ports of a switch on a shortest path to it, for those that it reaches."""
        found = ((host, self.hops(switch, host)) for host in hosts)
        return {host: hops for host, hops in found if hops}

    def hops(self, switch: str, host: str) -> tuple[Port, ...]:
        """The ports of one switch on a shortest path to one host; none if it is unreachable."""
        for edge_port in map(self.peer.__getitem__, self.ports[host]):
            if edge_port.node == switch:
                return (edge_port,)
            own = self.next_hops_of(switch)
            hops = own.lists[own.of_leaf[self.leaf_number[edge_port.node]]]
            if hops:
                return hops
        return ()

    def next_hops_of(self, switch: str) -> NextHops:
        """The next hops of one switch to each leaf, in the order of `leaves`."""
        return self._shortest_paths.of(switch)

    def changed_hops(self, later: Topology) -> Iterator[tuple[str, dict[str, tuple[Port, ...]]]]:
        """The switches whose next hops differ in `later`, which has the same nodes, each with its
        next hops there to the hosts for which they differ. None: unreachable."""
        leaves = list(self.leaves | later.leaves)
        recabled = [host for host in self.host if self.ports[host] != later.ports[host]]
        for switch in self.switch:
            number: dict[tuple[Port, ...], int] = {(): 0}
            before, after = (part._numbered_hops(switch, leaves, number) for part in (self, later))
            changed = [leaves[place] for place in np.flatnonzero(before != after).tolist()]
            parts = [part.leaves.get(leaf, ()) for leaf in changed for part in (self, later)]
            hosts = (host for part in parts for host in part)
            changes = {
                host: later.hops(switch, host)
                for host in dict.fromkeys((*hosts, *recabled))
                if self.hops(switch, host) != later.hops(switch, host)
            }
            if changes:
                yield switch, changes

    def _numbered_hops(
        self, switch: str, leaves: Sequence[str], number: dict[tuple[Port, ...], int]
    ) -> NDArray[np.int64]:
        """For each of `leaves`, the number of the switch's next hops to it; 0: unreachable. Lists
        without a number get one."""
        own = self.next_hops_of(switch)
        numbers = np.array([number.setdefault(hops, len(number)) for hops in own.lists])
        of_leaf = np.append(numbers[own.of_leaf], 0)
        return of_leaf[[self.leaf_number.get(leaf, -1) for leaf in leaves]]

    def stages(self, src: str, dst: str) -> list[Stage]:
        """The hops from one host to another, each with all ports that a shortest path may use; none
        when there is no path."""
        return self._stages.between(src, dst)

    @cached_property
    def _stages(self) -> Stages:
        return Stages(self)

    @cached_property
    def _shortest_paths(self) -> ShortestPaths:
        return ShortestPaths(self._cabled, list(self.leaves))

    @cached_property
    def leaves(self) -> dict[str, list[str]]:
        """Each switch with cables to hosts -> these hosts. Leaves are in the order of their first
        hosts."""
        leaves: dict[str, list[str]] = {}
        for host in self.hosts:
            for port in self.ports[host.name]:
                leaves.setdefault(self.peer[port].node, []).append(host.name)
        return leaves

    @cached_property
    def leaf_of_host(self) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
        """Two columns: for each cable of a host the number of its leaf, and the low 16 bits of the
        host's address. Cables of the same leaf are together."""
        hosts = [(leaf, host) for leaf, own in enumerate(self.leaves.values()) for host in own]
        numbers = np.array([leaf for leaf, _ in hosts], np.int64)
        return numbers, np.array([self.addresses[host] for _, host in hosts], np.uint16)

    @cached_property
    def leaf_number(self) -> dict[str, int]:
        """The place of each leaf among the leaves."""
        return {leaf: number for number, leaf in enumerate(self.leaves)}

    @cached_property
    def _cabled(self) -> dict[str, list[tuple[Port, str]]]:
        """Each switch's ports to other switches, by number, each with the switch at its far end."""
        far = {port: self.peer[port].node for port in self.peer}
        return {
            switch: [(port, far[port]) for port in self.ports[switch] if far[port] in self.switch]
            for switch in self.switch
        }


class Builder:
    """Builds a topology. Hosts, switches and ports are numbered in the order of the calls."""

    def __init__(self) -> None:
        self._hosts: list[Host] = []
        self._switches: list[Switch] = []
        self._cables: list[Cable] = []
        self._nodes: dict[str, Host | Switch] = {}
        self._next_port: dict[str, int] = {}

    def add_host(self, name: str | None = None) -> str:
        """Adds a host and returns its name, which is `hN` by default."""
        host = Host(name or f"h{len(self._hosts) + 1}", len(self._hosts) + 1)
        self._hosts.append(host)
        return self._add(host, first_port=0)

    def add_hosts(self, switch: str, count: int, wire: Wire) -> None:
        """Adds hosts, each with a cable to the switch's next port."""
        for _ in range(count):
            self.add_cable(switch, self.add_host(), wire)

    def add_switch(self, name: str, role: str) -> str:
        """Adds a switch and returns its name."""
        switch = Switch(name, len(self._switches) + 1, role)
        self._switches.append(switch)
        return self._add(switch, first_port=1)

    def add_cable(self, a: str, b: str, wire: Wire) -> None:
        self._cables.append(Cable(self._port(a), self._port(b), wire.rate_bps, wire.delay_ps))

    def topology(self) -> Topology:
        return Topology(tuple(self._hosts), tuple(self._switches), tuple(self._cables))

    def _add(self, node: Host | Switch, *, first_port: int) -> str:
        self._nodes[node.name] = node
        self._next_port[node.name] = first_port
        return node.name

    def _port(self, name: str) -> Port:
        number = self._next_port[name]
        self._next_port[name] += 1
        return Port(name, number, _mac(self._nodes[name], number))


def _mac(node: Host | Switch, number: int) -> str:
    """The MAC address: a host's from its IP address, a switch port's from index and number."""
    if isinstance(node, Host):
        return (b"\x02\x00" + node.ip.packed).hex(":")
    return (b"\x02\x01" + node.index.to_bytes(2, "big") + number.to_bytes(2, "big")).hex(":")
