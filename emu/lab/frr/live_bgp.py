"""BGP in a lab that stays up: FRR decides the routes of its switches while it runs.

    real clock     FRR's packets cross the emulated cables; its clock is slowed down as the lab is
    exact clock    emulated time waits while FRR, on cables of its own, reacts to a change of links

Both take each change of routes from the kernels of the switches, and give it to the shim.
"""

from __future__ import annotations

import socket
import threading
import time
from abc import abstractmethod
from collections.abc import Mapping

from emu.bgp.frr_conf import frr_confs
from emu.bindings.packet_socket import packet_socket
from emu.errors import FabricError
from emu.lab.frr.clock import DaemonClock, MachineClock
from emu.lab.frr.control_plane import SECONDS_TO_SETTLE, ControlPlane
from emu.lab.frr.daemons import ENVIRONMENT, places_of, require_frr
from emu.lab.frr.mesh import Mesh
from emu.lab.frr.switch_ports import SwitchPorts
from emu.lab.ipc.routing import LinksChanged, RouteStep
from emu.lab.namespace import PRIVATE
from emu.lab.netns import entered
from emu.lab.rerouting import CpuPorts, LiveRouting, System, numbers_of
from emu.spec.learned_table import LearnedTable
from emu.spec.outages import Hops
from emu.spec.route_recording import RouteChange
from emu.spec.scenario import Spec
from emu.units import PS_PER_NS
from emu.words import listed
from topologies.graph import Cable

_MTU = 1500
"""Of the ports as the switches' operating systems see them. Packets of BGP are small."""
_SECONDS_BETWEEN_LOOKS = 0.25
_AFTER_A_DEATH = {
    "zebra": "its routes stay as they are",
    "bgpd": "zebra takes its routes out, and its neighbours leave it",
    "bfdd": "its sessions go on without BFD",
}


class BgpRouting(LiveRouting):
    """What both clocks have in common."""

    def __init__(self, spec: Spec, *, bridges: bool) -> None:
        """Raises UsageError: a frr.conf cannot be used; HostError: FRR is not installed."""
        require_frr()
        super().__init__(spec, bridges=bridges)
        self._confs = frr_confs(spec)
        self._learned = {switch: LearnedTable(self.whole, switch) for switch in self.whole.switch}
        self._learning = threading.RLock()
        """Held while routes are taken and sent, so that they are sent in their order."""
        self._link_change_ps = 0
        self._frr: ControlPlane | None = None
        self._number_of = {cable: place for place, cable in enumerate(self.whole.cables)}

    @property
    @abstractmethod
    def namespaces(self) -> Mapping[str, int]:
        """A process or thread in the namespaces of each switch."""

    @property
    def systems(self) -> Mapping[str, System]:
        return {
            switch: System(task, places_of(switch), ENVIRONMENT)
            for switch, task in self.namespaces.items()
        }

    @abstractmethod
    def route_changed(self, change: RouteChange) -> None:
        """A switch's kernel has other routes. Called on a thread."""

    def begin(self, namespaces: Mapping[str, int], clock: MachineClock) -> None:
        """Starts FRR on all switches, and returns when no route changes any more. Raises
        HostError, FabricError, OSError."""
        self._frr = ControlPlane(self.whole, self._confs, namespaces, self.route_changed, clock)
        self.frr.settle_at_start()
        missing = sorted(
            interface for _, interface in self.frr.configured - self.frr.established().keys()
        )
        if missing:
            self.notes.append(f"no session of BGP was established at {listed(missing, 6)}")
        threading.Thread(target=self._note_deaths, name="frr", daemon=True).start()

    @property
    def frr(self) -> ControlPlane:
        """FRR, once it runs."""
        assert self._frr is not None
        return self._frr

    def numbers(self, cables: frozenset[Cable]) -> frozenset[int]:
        """The places of cables in the topology's."""
        return frozenset(self._number_of[cable] for cable in cables)

    def has_effect(self, change: RouteChange) -> bool:
        """Whether the switch forwards by this change. Without local repair it waits for BGP when a
        port has lost its link."""
        return not change.by_kernel or self.spec.switch(change.switch).routing.bgp.local_repair

    def lose(self, lost: frozenset[Cable]) -> None:
        """Switches do not reach their own hosts by these cables."""
        for table in self._learned.values():
            table.lose(lost)

    def learn(self, change: RouteChange) -> None:
        """A switch takes new routes into its table."""
        self._learned[change.switch].learn(change.fib)

    def take_changes(self) -> dict[str, Hops]:
        """What has changed in the tables of all switches since the last call."""
        changes = {name: table.take_changes() for name, table in self._learned.items()}
        return {name: hops for name, hops in changes.items() if hops}

    def now(self, switches: Mapping[str, Hops]) -> dict[str, Hops]:
        """All routes of these switches."""
        return {name: dict(self._learned[name].hops) for name in switches}

    def send_at_once(self) -> None:
        """Sends what has changed, to be in force now."""
        if changes := self.take_changes():
            steps = [RouteStep(0, {name: numbers_of(hops) for name, hops in changes.items()})]
            self.send(self._link_change_ps, {}, self.now(changes), steps)

    def send_after_convergence(self) -> None:
        """Sends what has changed, to be in force `convergence` after the last change of links."""
        if changes := self.take_changes():
            self.send(self._link_change_ps, changes, self.now(changes))

    def _note_deaths(self) -> None:
        told = set[tuple[str, str]]()
        while True:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            for switch, daemons in self.frr.daemons.items():
                for name in daemons.dead():
                    if (switch, name) not in told:
                        told.add((switch, name))
                        self.notes.append(f"{name} on {switch} has ended; {_AFTER_A_DEATH[name]}")


class RealBgp(BgpRouting):
    """BGP on the real clock."""

    def __init__(
        self, spec: Spec, namespaces: Mapping[str, int], *, bridges: bool, slowdown: float
    ) -> None:
        """`namespaces`: a process or thread in the namespace of each switch. Raises UsageError,
        HostError, FabricError, OSError."""
        super().__init__(spec, bridges=bridges)
        self._namespaces = namespaces
        self._slowdown = slowdown
        self._clock = None if slowdown == 1 else DaemonClock(PRIVATE / "frr-clock")
        self._ports = SwitchPorts(self.whole, namespaces, _MTU)
        self._ports.send_whole_packets()
        with entered(self._ports.cables):
            self.cpu_ports = CpuPorts(
                packet_socket(),
                {
                    self.whole.port_name[port]: socket.if_nametoindex(port.interface)
                    for port in self.whole.switch_ports
                },
            )

    @property
    def namespaces(self) -> Mapping[str, int]:
        return self._namespaces

    def start(self) -> None:
        """Starts FRR, at the machine's speed until all sessions are established."""
        with self._learning:
            self.send_at_once()  # until FRR says so, nobody is reached but a switch's own hosts
        self.begin(self._namespaces, self._clock or MachineClock())
        if self._clock is not None:
            self._clock.slow_down(self._slowdown)

    def route_changed(self, change: RouteChange) -> None:
        if not self.has_effect(change):
            return
        with self._learning:
            self.learn(change)
            if change.by_kernel:
                self.send_after_convergence()
            else:
                self.send_at_once()

    def answer(self, change: LinksChanged) -> None:
        lost = self.cables(change)
        with self._learning:
            self._link_change_ps = change.at_ps
            self.lose(lost)
            self.send_after_convergence()
        self._ports.lose(self.numbers(lost))


class ExactBgp(BgpRouting):
    """BGP on the exact clock. FRR's cables are a mesh of its own, and its clock is the machine's:
    what it does some time after a change of links is in force that much emulated time later."""

    def __init__(self, spec: Spec, *, bridges: bool) -> None:
        """Raises UsageError, HostError, FabricError, OSError."""
        super().__init__(spec, bridges=bridges)
        self._mesh = Mesh(self.whole)
        self._usual = frozenset[tuple[str, str]]()
        self._gathered: list[RouteChange] | None = []
        """The changes of routes since a change of links; None: they are sent one by one."""

    @property
    def namespaces(self) -> Mapping[str, int]:
        return self._mesh.namespaces

    def start(self) -> None:
        """Starts FRR, and sends its routes when all sessions are established."""
        self.begin(self._mesh.namespaces, MachineClock())
        self._usual = frozenset(self.frr.established())
        with self._learning:
            for change in self._taken():
                self.learn(change)
            self.send_at_once()

    def route_changed(self, change: RouteChange) -> None:
        if not self.has_effect(change):
            return
        with self._learning:
            if self._gathered is not None:
                self._gathered.append(change)
            else:
                self.learn(change)
                self.send_at_once()

    def answer(self, change: LinksChanged) -> None:
        lost = self.cables(change)
        with self._learning:
            self._gathered = []
        began_ns = time.monotonic_ns()
        self._mesh.set_links(self.numbers(lost))
        self._settle(lost)
        with self._learning:
            self._link_change_ps = change.at_ps
            self._send_gathered(change.at_ps, began_ns, lost)

    def _settle(self, lost: frozenset[Cable]) -> None:
        """Waits until FRR has reacted to the loss of exactly these cables."""
        cut = {(port.node, port.interface) for cable in lost for port in (cable.a, cable.b)}
        try:
            is_still = self.frr.settle(
                time.monotonic() + SECONDS_TO_SETTLE, self._usual - cut, may_be_dead=True
            )
        except FabricError as error:
            self.notes.append(str(error))
            return
        if not is_still:
            self.notes.append(
                f"BGP has not settled {SECONDS_TO_SETTLE:g} s after a change of links; what it "
                "does later is in force when it comes"
            )

    def _send_gathered(self, at_ps: int, began_ns: int, lost: frozenset[Cable]) -> None:
        taken = self._taken()
        self.lose(lost)
        for one in taken:
            if one.by_kernel:
                self.learn(one)
        changes = self.take_changes()
        changed = dict(changes)
        steps = []
        for one in taken:
            if not one.by_kernel:
                self.learn(one)
                if later := self.take_changes():
                    since_ps = max(0, one.at_ns - began_ns) * PS_PER_NS
                    numbers = {name: numbers_of(hops) for name, hops in later.items()}
                    steps.append(RouteStep(at_ps + since_ps, numbers))
                    changed |= later
        self.send(at_ps, changes, self.now(changed), steps)

    def _taken(self) -> list[RouteChange]:
        """What was gathered; from now on, changes are sent one by one."""
        taken, self._gathered = self._gathered, None
        return taken or []
