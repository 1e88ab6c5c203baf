"""InfiniBand's subnet manager of a lab on the exact clock: emulated time waits for its answers.

As `LiveSubnet`, but each link change has one answer, which is that of the virtual clock: the tables
and service levels of the sweep that `emu.subnet.sm_sweeps` makes for the same lost links. So only
the first of `subnet.managers` runs, as there. A state of the links that was seen before is answered
with the tables of its first sweep, and ibsim follows when no change waits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from emu.errors import FabricError
from emu.lab.ipc.routing import Unanswered
from emu.lab.live_subnet import LiveSubnet
from emu.lab.supervisor import Supervisor
from emu.spec.scenario import Spec
from emu.subnet.subnet import Lfts, PathSLs
from topologies.graph import Cable, Topology


class _Sweep(NamedTuple):
    lfts: Lfts
    levels: PathSLs


class ExactSubnet(LiveSubnet):
    """The subnet management of a lab's fabric on the exact clock. It exists before the fabric
    starts."""

    def __init__(self, spec: Spec, topology: Topology, supervisor: Supervisor) -> None:
        self._sweep_of: dict[frozenset[Cable], _Sweep] = {}
        self._behind: frozenset[Cable] | None = None
        """The lost cables that ibsim has not followed yet."""
        super().__init__(spec, topology, supervisor, all_hosts=False)

    def _manager_hosts(self) -> tuple[str, ...]:
        return super()._manager_hosts()[:1]

    def _answer(self) -> None:
        down = frozenset(map(self._cable, self._change.down))
        try:
            sweep = self._swept(down)
        except FabricError:
            self._shim.send(Unanswered(self._change.at_ps))
            raise
        self.now = replace(self.now, levels=sweep.levels)
        self._send(sweep.lfts)
        if self._behind is None:
            self._use_levels(sweep.levels)

    def _swept(self, down: frozenset[Cable]) -> _Sweep:
        """The outcome of a sweep without these cables. Raises FabricError."""
        if not self._sweep_of:
            self._sweep_of[frozenset()] = _Sweep(self.now.lfts, self.now.levels)
        self._behind = down if down in self._sweep_of else None
        if down not in self._sweep_of:
            lfts = self._managed.without(down)
            self._sweep_of[down] = _Sweep(lfts, self._managed.levels(self._pairs))
        return self._sweep_of[down]

    def _check_managers(self) -> None:
        if self._behind is not None and not self._shim.has_more(0):
            down, self._behind = self._behind, None
            self._managed.without(down)
            self._use_levels(self.now.levels)
        super()._check_managers()
