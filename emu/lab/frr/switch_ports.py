"""The ports of switches that run FRR, as their operating systems see them.

    leaf1's namespace          cables
     lo         10.255.0.1
     leaf1-eth1 ─── veth ─── leaf1-eth1        towards a host, whose address is that of its peer
     leaf1-eth3 ─── veth ─── leaf1-eth3        towards another switch

The two interfaces of a pair have the same name. What connects those in the namespace `cables` is
another matter: bridges (`Mesh`), or the emulated cables of a lab. A port loses its carrier when its
far end is set down, as with a pulled plug.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from emu.bgp.numbering import loopback
from emu.lab import netlink
from emu.lab.net_steps import AddAddress, AddPeerAddress, AddVeth, NetStep, SetDown, SetUp
from emu.lab.netns import entered, write_sysctl
from emu.lab.netns_holder import keep_host
from emu.lab.offload import turn_offloads_off
from topologies.graph import Port, Topology

CABLES = "cables"
_INDICES = 1_000_000
"""Added to a port's number, so that the two ends of a pair differ in their index. If they are equal
by chance, Linux reports a lost carrier up to a second late (net/core/link_watch.c)."""
_SYSCTLS = {
    "net.ipv4.ip_forward": "1",
    "net.ipv6.conf.all.forwarding": "1",
    # Otherwise a port has no address for its session in its first second.
    "net.ipv6.conf.all.accept_dad": "0",
    "net.ipv6.conf.default.accept_dad": "0",
}
_CABLE_SYSCTLS = {"net.ipv6.conf.default.disable_ipv6": "1"}
"""A cable sends nothing itself."""


class SwitchPorts:
    """The interfaces of all switches, and their far ends."""

    def __init__(self, topology: Topology, namespaces: Mapping[str, int], mtu: int) -> None:
        """`namespaces`: a process or thread in the namespace of each switch. All links are up.
        Raises OSError, HostError, FabricError."""
        self._topology = topology
        self._pids = {CABLES: keep_host(), **namespaces}
        self._lost = frozenset[int]()
        for name, namespace in self._pids.items():
            with entered(namespace):
                for key, value in (_CABLE_SYSCTLS if name == CABLES else _SYSCTLS).items():
                    write_sysctl(key, value)
        self.carry_out(_steps(topology, mtu))

    @property
    def cables(self) -> int:
        """A thread in the namespace of the far ends."""
        return self._pids[CABLES]

    def lose(self, lost: Set[int]) -> None:
        """Exactly these cables have no link, by their place in the topology's cables."""
        steps: list[NetStep] = []
        for number in sorted(self._lost ^ lost):
            step = SetDown if number in lost else SetUp
            steps += [step(CABLES, port.interface) for port in switch_ends(self._topology, number)]
        self._lost = frozenset(lost)
        self.carry_out(steps)

    def send_whole_packets(self) -> None:
        """Turns offloads off at both ends: what crosses is complete packets, with checksums."""
        for name, namespace in self._pids.items():
            with entered(namespace):
                for port in self._topology.switch_ports:
                    if name in (CABLES, port.node):
                        turn_offloads_off(port.interface)

    def carry_out(self, steps: Sequence[NetStep]) -> None:
        """Carries out steps in the namespaces of switches and cables."""
        netlink.carry_out(steps, self._pids)


def switch_ends(topology: Topology, number: int) -> list[Port]:
    """The ends of a cable that are ports of switches."""
    cable = topology.cables[number]
    return [port for port in (cable.a, cable.b) if port.node in topology.switch]


def _steps(topology: Topology, mtu: int) -> list[NetStep]:
    ports = [port for switch in topology.switch for port in topology.ports[switch]]
    return [
        *(
            AddVeth(port.node, port.interface, CABLES, mtu, port.mac, _INDICES + port.number)
            for port in ports
        ),
        *(SetUp(CABLES, port.interface) for port in ports),
        *_addresses(topology),
        *(SetUp(port.node, port.interface) for port in ports),
    ]


def _addresses(topology: Topology) -> list[NetStep]:
    steps: list[NetStep] = []
    for switch in topology.switch:
        own = str(loopback(topology, switch))
        steps += [AddAddress(switch, "lo", own, 32), SetUp(switch, "lo")]
        for port in topology.ports[switch]:
            host = topology.host.get(topology.peer[port].node)
            if host is not None:
                steps.append(AddPeerAddress(switch, port.interface, own, str(host.ip)))
    return steps
