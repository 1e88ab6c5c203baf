"""A managed fabric: ibsim and OpenSM run together, and decide tables and service levels.

    with ManagedFabric(topology, policy, workdir) as managed:
        managed.subnet()                    tables of the first sweep
        managed.without(cables)             OpenSM gets traps and sweeps again

Of several OpenSMs, the first is master. When it ends, or its host's cable is pulled, the next one
takes over, and hands over again when the first is back.

The default engine is updn: a packet that went down never goes up again, so that
no credit loop can form. In a leaf-spine, its routes between hosts are shortest paths, spread
over the spines like those of minhop. One spine cannot reach another, which hosts do not need.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import TracebackType
from typing import Self

from emu.engines import ENGINE_THAT_DRAWS_LEVELS, ENGINES_WITH_LEVELS
from emu.errors import FabricError
from emu.subnet.dumps import parse_guid2lid, parse_lfts
from emu.subnet.ibsim import Ibsim
from emu.subnet.opensm import OpenSm
from emu.subnet.paths import service_levels
from emu.subnet.policy import Policy
from emu.subnet.subnet import Lfts, PathSLs, Subnet
from topologies.graph import Cable, Topology
from topologies.guids import host_port_guid, switch_guid

_DEFAULT = Policy()
_HIGHEST_PRIORITY = 15
_SECONDS_AT_REST = 0.1
"""Before a pull that is timed: OpenSM forgets a trap that it gets while a sweep ends."""

Pair = tuple[str, str]
"""Source and destination host."""


class ManagedFabric:
    """A context manager; ibsim and OpenSM run until it exits."""

    def __init__(
        self,
        topology: Topology,
        policy: Policy,
        workdir: Path,
        *,
        hosts: Sequence[str] = (),
    ) -> None:
        """OpenSM runs on these `hosts`, the master first; by default on the fabric's first host.
        `workdir` is created and keeps all files. Entering raises HostError, FabricError.
        """
        self._hosts = hosts or [topology.hosts[0].name]
        self.managers: dict[str, OpenSm] = {}
        self._topology = topology
        self._policy = policy
        self._workdir = workdir.absolute()
        self._stack = ExitStack()
        self._down: frozenset[Cable] = frozenset()
        self._lids: dict[str, int] = {}
        self._lfts: Lfts = {}

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        with ExitStack() as stack:
            self._workdir.mkdir(parents=True, exist_ok=True)
            self.simulator = stack.enter_context(Ibsim(self._topology, self._workdir))
            for rank, host in enumerate(self._hosts):
                self._start_manager(stack, rank, host)
            self._stack = stack.pop_all()
        return self

    def _start_manager(self, stack: ExitStack, rank: int, host: str) -> None:
        """Starts the OpenSM of a host. Waits for the first one's sweep, so that it is master when
        the others start."""
        folder = self._workdir / host if rank else self._workdir
        manager = OpenSm(
            self._topology,
            self._policy,
            self.simulator.environment(host, folder),
            folder,
            priority=_HIGHEST_PRIORITY - rank,
        )
        self.managers[host] = stack.enter_context(manager)
        if rank == 0:
            manager.wait_for_next_sweep()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def master(self) -> str:
        """The host of the first OpenSM that runs and is connected; the last host if none is."""
        *first, last = self.managers
        return next((host for host in first if self.can_manage(host)), last)

    def can_manage(self, host: str) -> bool:
        """Whether the host's OpenSM runs, and its cable is connected."""
        return self.managers[host].is_running and self._own_cable(host) not in self._down

    def _own_cable(self, host: str) -> Cable:
        return self._topology.cable[self._topology.ports[host][0]]

    @property
    def opensm(self) -> OpenSm:
        """The master's OpenSM."""
        return self.managers[self.master]

    def without(self, down: frozenset[Cable]) -> Lfts:
        """The tables of a sweep while exactly these cables are pulled."""
        if self.pull(down):
            self.opensm.sweep_and_wait()
        return self.tables()

    def seconds_to_tables(self, down: frozenset[Cable]) -> float:
        """Pulls exactly these cables, and waits for OpenSM's tables. Returns the time from the
        first pull until all switches have the tables that no further sweep changes. At least one
        cable must change. Raises FabricError."""
        time.sleep(_SECONDS_AT_REST)
        began_s = time.time()
        self.pull(down)
        self.opensm.wait_for_next_sweep()
        tables, ready_s = self.tables(), self.opensm.tables_ready_s()
        self.opensm.sweep_and_wait()
        if self.tables() != tables:
            ready_s = self.opensm.tables_ready_s()
        return ready_s - began_s

    def pull(self, down: frozenset[Cable]) -> bool:
        """Pulls exactly these cables and connects all others. Returns whether anything changed.

        OpenSM gets traps and sweeps. If all its hosts would be cut off, the first keeps its
        cable, because without a cable OpenSM sees and changes nothing.
        """
        own = [self._own_cable(host) for host in self._hosts]
        if down.issuperset(own):
            down -= {own[0]}
        acting, lost, back = self.opensm, down - self._down, self._down - down
        acting.has_swept()
        for cable in lost:
            self.simulator.unlink(cable.a)
        for cable in back:
            self.simulator.relink(cable.a)
        self._down = down
        self._introduce(back, acting)
        return bool(lost or back)

    def _introduce(self, back: frozenset[Cable], acting: OpenSm) -> None:
        """Makes managers whose cables are back known to the acting master, after its sweep. If two
        managers swept at once, one could wait for a handover for ever.
        """
        for host in self._hosts:
            if self._own_cable(host) in back and self.can_manage(host) and acting.is_running:
                acting.wait_for_next_sweep()
                self.simulator.mark_as_manager(self._topology.host[host])

    def tables(self) -> Lfts:
        """The tables of the last sweep. A switch that it did not reach keeps its old table."""
        self._lfts = self._lfts | self._read_lfts()
        return self._lfts

    def subnet(self, pairs: Iterable[Pair] = ()) -> Subnet:
        """The decisions of the first sweep, and the service levels of these paths.

        Raises FabricError when OpenSM missed a node, or left a host unreachable.
        """
        self._lids, self._lfts = self._read_lids(), self._read_lfts()
        missing = [
            switch.name for switch in self._topology.switches if switch.name not in self._lfts
        ]
        if missing:
            raise self._not_found(missing)
        subnet = self._swept()
        _check_reach(self._topology, subnet)
        levels = self.levels(pairs)
        return replace(subnet, levels=levels, seconds=time.monotonic() - self._began)

    def levels(self, pairs: Iterable[Pair]) -> PathSLs:
        """The service levels of these paths since the last sweep, without paths that are cut.

        OpenSM must run. Raises FabricError.
        """
        swept = self._swept()
        if swept.engine not in ENGINES_WITH_LEVELS:
            return {}
        left = [pair for pair in pairs if self._can_be_asked(swept, *pair)]
        in_order = swept.engine == ENGINE_THAT_DRAWS_LEVELS
        return service_levels(self.simulator, self._lids, left, in_order=in_order)

    def paths_left(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The pairs whose path is not cut since the last sweep."""
        swept = self._swept()
        return [pair for pair in pairs if self._leads(swept, *pair)]

    def _can_be_asked(self, swept: Subnet, src: str, dst: str) -> bool:
        """Whether there is a path, and the source can ask OpenSM for its path record."""
        paths = ((src, dst), (src, self.master), (self.master, src))
        return all(self._leads(swept, *path) for path in paths if len(set(path)) == 2)

    def _leads(self, swept: Subnet, src: str, dst: str) -> bool:
        """Whether these tables lead from `src` to `dst` over connected cables."""
        try:
            path = swept.path(self._topology, src, dst)
        except FabricError:
            return False
        return not self._down & {self._topology.cable[port] for port in path}

    def _swept(self) -> Subnet:
        """The tables that were read last, and the engine that made them. Searches all of OpenSM's
        log."""
        used = self.opensm.engine_used()
        return Subnet(self._lids, self._lfts, used, 0.0, lmc=self._policy.lmc)

    def _read_lids(self) -> dict[str, int]:
        """LIDs by node name. Raises FabricError when a node has none."""
        topology = self._topology
        lids = parse_guid2lid(self.opensm.dump("guid2lid"))
        guids = {host.name: host_port_guid(host) for host in topology.hosts}
        guids |= {switch.name: switch_guid(switch) for switch in topology.switches}
        missing = [name for name, guid in guids.items() if guid not in lids]
        if missing:
            raise self._not_found(missing)
        return {name: lids[guid] for name, guid in guids.items()}

    def _read_lfts(self) -> Lfts:
        """The forwarding tables by switch name, for the switches that the last sweep reached."""
        lfts = parse_lfts(self.opensm.dump_of_last_sweep("opensm-lfts.dump"))
        own = ((switch.name, switch_guid(switch)) for switch in self._topology.switches)
        return {name: lfts[guid] for name, guid in own if guid in lfts}

    def _not_found(self, names: Sequence[str]) -> FabricError:
        return FabricError(
            f"OpenSM did not find {', '.join(names)}: "
            f"is the fabric in one piece? Its log is {self._workdir / 'opensm.log'}"
        )


def sweep(
    topology: Topology,
    *,
    policy: Policy = _DEFAULT,
    workdir: Path,
    pairs: Sequence[Pair] = (),
) -> Subnet:
    """Lets OpenSM discover and route the fabric once. `workdir` is created and keeps all files.

    OpenSM falls back to minhop if an engine cannot route a fabric (updn finds no roots
    in a ring unless they are configured). The subnet's `engine` is the one that it used.

    Raises HostError when a program is missing, and FabricError when OpenSM fails, does
    not know the engine, or leaves a host unreachable.
    """
    with ManagedFabric(topology, policy, workdir) as managed:
        return managed.subnet(pairs)


def _check_reach(topology: Topology, subnet: Subnet) -> None:
    """Raises FabricError unless every switch with hosts reaches every host."""
    leaves = {
        topology.peer[port].node for host in topology.hosts for port in topology.ports[host.name]
    }
    for leaf, host in product(sorted(leaves), topology.hosts):
        subnet.path(topology, leaf, host.name)
