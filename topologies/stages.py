"""The hops between two hosts, when a packet may take any of several equal paths.

    h1 ── edge1 ══ agg1, agg2 ══ core1 to core4 ══ agg3, agg4 ══ edge3 ── h5

A stage is all ports that a shortest path may use at one distance. In a large fabric many pairs of
hosts share a stage: all that leave a pod, for example. Each is kept once, so that the same stage is
the same object, and finding a path costs a look at the routes of the nodes on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topologies.graph import Port, Topology

Stage = tuple["Port", ...]
"""The sending ports of one hop: all those that a shortest path may use."""


class _Switches:
    """Switches at the same distance from where packets go, and the stages that follow."""

    def __init__(self, topology: Topology, names: tuple[str, ...]) -> None:
        self.names = names
        tables = [topology.next_hops_of(name) for name in names]
        self._of_leaf = [table.of_leaf for table in tables]
        self._lists = [table.lists for table in tables]
        self._onward: dict[tuple[int, ...], tuple[Stage, tuple[str, ...]]] = {}
        self._peer = topology.peer

    def onward(self, leaf: int) -> tuple[Stage, tuple[str, ...]]:
        """The stage towards a leaf, and the switches that it leads to."""
        numbers = tuple([of_leaf.item(leaf) for of_leaf in self._of_leaf])
        if numbers not in self._onward:
            lists = (own[number] for own, number in zip(self._lists, numbers, strict=True))
            stage = tuple(port for ports in lists for port in ports)
            far = tuple(sorted({self._peer[port].node for port in stage}))
            self._onward[numbers] = stage, far
        return self._onward[numbers]


class Stages:
    """The stages of all paths through a fabric, each found once."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._switches: dict[tuple[str, ...], _Switches] = {}
        self._alone: dict[Port, Stage] = {}

    def between(self, src: str, dst: str) -> list[Stage]:
        """The stages from one host to another, with those of their own cables; none when there is
        no path. Raises KeyError for an unknown host."""
        ports, peer = self._topology.ports, self._topology.peer
        if src == dst or not ports[src] or not ports[dst]:
            return []
        (out,), (into,) = ports[src], ports[dst]
        last = peer[into]
        found = [self._of(out)]
        for stage in self._to_leaf(peer[out].node, last.node):
            if not stage:
                return []
            found.append(stage)
        return [*found, self._of(last)]

    def _to_leaf(self, switch: str, leaf: str) -> Iterator[Stage]:
        """The stages between switches; the last is empty if there is no path."""
        number = self._topology.leaf_number[leaf]
        names: tuple[str, ...] = (switch,)
        while names and names[0] != leaf:
            if names not in self._switches:
                self._switches[names] = _Switches(self._topology, names)
            stage, names = self._switches[names].onward(number)
            yield stage

    def _of(self, port: Port) -> Stage:
        return self._alone.setdefault(port, (port,))
