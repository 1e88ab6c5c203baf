"""The cables between switches that run FRR alone: Ethernet without emulated rates and delays.

    leaf1's namespace          cables                   spine1's namespace
     leaf1-eth3 ─── veth ─── bridge of the cable ─── veth ─── spine1-eth1

Both ends of a cable lose their carrier when it is cut. A cable that fails silently has one end
taken out of its bridge: both ports stay up, and nothing passes. A host's cable ends in the middle.
"""

from __future__ import annotations

from collections.abc import Collection

from emu.lab.frr.switch_ports import CABLES, SwitchPorts, switch_ends
from emu.lab.net_steps import AddBridge, ClearBridge, NetStep, SetBridge, SetUp
from emu.lab.netns_holder import keep_host
from topologies.graph import Topology

_MTU = 9216


class Mesh:
    """The switches' namespaces and the cables of a fabric."""

    def __init__(self, topology: Topology) -> None:
        """Makes them, with all links up. Raises OSError, HostError, FabricError."""
        self._topology = topology
        self.namespaces = {switch: keep_host() for switch in topology.switch}
        self._ports = SwitchPorts(topology, self.namespaces, _MTU)
        self._silent = frozenset[int]()
        self._ports.carry_out(_bridges(topology))

    def set_links(self, down: Collection[int], silent: Collection[int] = ()) -> None:
        """Takes exactly these cables' links away, or lets them carry nothing, by their place in the
        topology's cables."""
        quiet = frozenset(silent)
        steps: list[NetStep] = []
        for number in sorted(self._silent ^ quiet):
            end = switch_ends(self._topology, number)[0].interface
            steps.append(
                ClearBridge(CABLES, end)
                if number in quiet
                else SetBridge(CABLES, end, _bridge(number))
            )
        self._silent = quiet
        self._ports.lose(frozenset(down))
        self._ports.carry_out(steps)


def _bridges(topology: Topology) -> list[NetStep]:
    ends = {number: switch_ends(topology, number) for number in range(len(topology.cables))}
    joined = {number: both for number, both in ends.items() if len(both) == 2}
    return [
        *(AddBridge(CABLES, _bridge(number)) for number in joined),
        *(
            SetBridge(CABLES, port.interface, _bridge(number))
            for number, both in joined.items()
            for port in both
        ),
        *(SetUp(CABLES, _bridge(number)) for number in joined),
    ]


def _bridge(number: int) -> str:
    return f"cable{number}"
