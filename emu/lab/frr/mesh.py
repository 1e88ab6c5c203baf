"""The cables between switches that run FRR: Ethernet without emulated rates and delays.

    leaf1's namespace          cables                   spine1's namespace
     leaf1-eth3 ─── veth ─── bridge of the cable ─── veth ─── spine1-eth1

The two interfaces of a pair have the same name. Both ends of a cable lose their carrier when it is
cut, as with a pulled plug. A cable that fails silently has one end taken out of its bridge: both
ports stay up, and nothing passes. A host's cable ends in the middle; the switch has the host's
address as that of a point-to-point peer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from emu.bgp.numbering import loopback
from emu.lab import netlink
from emu.lab.net_steps import (
    AddAddress,
    AddBridge,
    AddPeerAddress,
    AddVeth,
    ClearBridge,
    NetStep,
    SetBridge,
    SetDown,
    SetUp,
)
from emu.lab.netns import entered, write_sysctl
from emu.lab.netns_holder import keep_host
from topologies.graph import Port, Topology

_CABLES = "cables"
_MTU = 9216
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


class Mesh:
    """The switches' namespaces and the cables of a fabric."""

    def __init__(self, topology: Topology) -> None:
        """Makes them, with all links up. Raises OSError, HostError, FabricError."""
        self._topology = topology
        self.namespaces = {switch: keep_host() for switch in topology.switch}
        self._pids = {_CABLES: keep_host(), **self.namespaces}
        self._down = self._silent = frozenset[int]()
        for name, namespace in self._pids.items():
            with entered(namespace):
                for key, value in (_CABLE_SYSCTLS if name == _CABLES else _SYSCTLS).items():
                    write_sysctl(key, value)
        self._carry_out(_steps(topology))

    def set_links(self, down: Collection[int], silent: Collection[int]) -> None:
        """Takes exactly these cables' links away, or lets them carry nothing, by their place in the
        topology's cables."""
        lost, quiet = frozenset(down), frozenset(silent)
        steps: list[NetStep] = []
        for number in sorted(self._down ^ lost):
            step = SetDown if number in lost else SetUp
            steps += [step(_CABLES, port.interface) for port in switch_ends(self._topology, number)]
        for number in sorted(self._silent ^ quiet):
            end = switch_ends(self._topology, number)[0].interface
            steps.append(
                ClearBridge(_CABLES, end)
                if number in quiet
                else SetBridge(_CABLES, end, _bridge(number))
            )
        self._down, self._silent = lost, quiet
        self._carry_out(steps)

    def _carry_out(self, steps: Sequence[NetStep]) -> None:
        netlink.carry_out(steps, self._pids)


def switch_ends(topology: Topology, number: int) -> list[Port]:
    """The ends of a cable that are ports of switches."""
    cable = topology.cables[number]
    return [port for port in (cable.a, cable.b) if port.node in topology.switch]


def _steps(topology: Topology) -> list[NetStep]:
    numbers = range(len(topology.cables))
    ends = {number: switch_ends(topology, number) for number in numbers}
    joined = {number: both for number, both in ends.items() if len(both) == 2}
    ports = [port for both in ends.values() for port in both]
    ports.sort(key=lambda port: port.node)  # requests of one namespace go together
    return [
        *(
            AddVeth(port.node, port.interface, _CABLES, _MTU, port.mac, _INDICES + port.number)
            for port in ports
        ),
        *(AddBridge(_CABLES, _bridge(number)) for number in joined),
        *(
            SetBridge(_CABLES, port.interface, _bridge(number))
            for number, both in joined.items()
            for port in both
        ),
        *(SetUp(_CABLES, _bridge(number)) for number in joined),
        *(SetUp(_CABLES, port.interface) for port in ports),
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


def _bridge(number: int) -> str:
    return f"cable{number}"
