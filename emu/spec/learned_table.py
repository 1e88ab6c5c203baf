"""The routes of one switch to all hosts, as a routing protocol has told them.

A packet takes the longest prefix that contains its destination. A host at the switch itself is
reached by its own cable.
"""

from __future__ import annotations

from ipaddress import IPv4Network

from emu.spec.outages import Hops, degraded
from emu.spec.route_recording import Fib, Ports
from topologies.graph import Cable, Port, Topology

_HOST_BITS = 32


class LearnedTable:
    """The routes at one moment. The switch begins with the shortest paths; the first changes are
    those to what it has been told."""

    def __init__(self, topology: Topology, switch: str) -> None:
        self._whole = self._now = topology
        self._switch = switch
        self._fib: dict[IPv4Network, Ports] = {}
        self._ports = {port.number: port for port in topology.ports[switch]}
        self._named = {host.ip: host.name for host in topology.hosts}
        self.hops: Hops = topology.hops_of(switch, topology.host)
        """The next hops to each host, up to the last changes that were taken."""
        self._touched: set[str] = set(topology.host)

    def learn(self, fib: Fib) -> None:
        """Takes routes that the protocol has changed. No ports: withdrawn."""
        new = {IPv4Network(prefix): ports for prefix, ports in fib.items()}
        self._fib |= new
        if any(prefix.prefixlen != _HOST_BITS for prefix in new):
            self._touched.update(self._whole.host)
            return
        hosts = (self._named.get(prefix.network_address) for prefix in new)
        self._touched.update(host for host in hosts if host is not None)

    def lose(self, down: frozenset[Cable]) -> None:
        """Exactly these cables have no link: the switch's own hosts may be cut off."""
        self._now = degraded(self._whole, down)
        self._touched.update(self._whole.host)

    def take_changes(self) -> Hops:
        """What has changed since the last call: host -> next hops; none: unreachable."""
        touched = sorted(self._touched, key=lambda host: self._whole.host[host].index)
        now = {host: self._hops_to(host) for host in touched}
        self._touched.clear()
        changes = {host: ports for host, ports in now.items() if self.hops.get(host, ()) != ports}
        self.hops |= changes
        return changes

    def _hops_to(self, host: str) -> tuple[Port, ...]:
        ends = (self._now.peer[port] for port in self._now.ports[host])
        own = tuple(end for end in ends if end.node == self._switch)
        return own or tuple(self._ports[number] for number in self._numbers(host))

    def _numbers(self, host: str) -> Ports:
        """The ports of the longest prefix that contains the host's address."""
        address = self._whole.host[host].ip
        if ports := self._fib.get(IPv4Network(address)):
            return ports
        wide = (prefix for prefix, ports in self._fib.items() if ports and address in prefix)
        longest = max(wide, key=lambda prefix: prefix.prefixlen, default=None)
        return () if longest is None else self._fib[longest]
