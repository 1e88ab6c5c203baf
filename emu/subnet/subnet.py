"""The decisions of a subnet manager: the LID of each node, and the tables of each switch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from emu.errors import FabricError

if TYPE_CHECKING:
    from topologies.graph import Port, Topology  # numpy takes long to import

Lfts = dict[str, dict[int, int]]
"""Switch -> LID -> output port; port 0 is the switch itself. No entry: unreachable."""

PathSLs = dict[str, dict[str, int]]
"""Source -> destination -> the service level that the path needs; no entry if any level will do."""


class Resweep(NamedTuple):
    """The outcome of a sweep caused by link changes."""

    at_ps: int
    """The time of the link changes, in picoseconds."""
    lfts: Lfts
    levels: PathSLs
    """The service levels of the remaining paths."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""


@dataclass(frozen=True)
class Subnet:
    """The outcome of one sweep."""

    lids: dict[str, int]
    """Host or switch -> LID, 1 to 0xBFFF. A switch has one, at its port 0."""
    lfts: Lfts
    engine: str
    """The routing engine that made the tables, as OpenSM calls it: `updn`, `minhop`, ..."""
    seconds: float
    """The time of the sweep in seconds, including the simulator."""
    later: tuple[Resweep, ...] = ()
    """The sweeps after link changes, in order of time."""
    lmc: int = 0
    """Each host has 2^lmc consecutive LIDs, and as many paths to it."""
    levels: PathSLs = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """Notes for the user."""

    def notes_up_to(self, at_ps: int) -> tuple[str, ...]:
        """The notes of this sweep and of later sweeps caused up to then, each once."""
        later = (note for later in self.later if later.at_ps <= at_ps for note in later.notes)
        return tuple(dict.fromkeys((*self.notes, *later)))

    def levels_after(self, at_ps: int) -> PathSLs:
        """The service levels in path records after all sweeps caused up to then."""
        levels = self.levels
        for later in self.later:
            if later.at_ps <= at_ps:
                levels = later.levels
        return levels

    def path(self, topology: Topology, src: str, dst: str, offset: int = 0) -> list[Port]:
        """The output ports, in order, of a packet from host or switch `src` to host `dst`.

        `offset`: the index of the host's LID, from 0 to 2^lmc - 1.

        Raises FabricError if the tables have no route, or a loop.
        """
        path: list[Port] = []
        node = src
        while node != dst:
            port = self._next(topology, node, dst, offset)
            if port in path:
                raise FabricError(f"the subnet manager's route from {src} to {dst} is a loop")
            path.append(port)
            node = topology.peer[port].node
        return path

    def _next(self, topology: Topology, node: str, dst: str, offset: int) -> Port:
        if node in topology.host:
            return topology.ports[node][0]
        number = self.lfts[node].get(self.lids[dst] + offset)
        for port in topology.ports[node]:
            if port.number == number:
                return port
        raise FabricError(f"the subnet manager found no route from {node} to {dst}")
