"""Records what FRR does when cables of a fabric are lost and come back.

    start ─▶ all sessions established, no route changes any more ─▶ time 0 of the run
    event ─▶ routes change in kernels ─▶ event ─▶ ... ─▶ no route changes any more, or the run ends

Time is that of the machine, at which FRR's timers run. Times in the recording are since the start
of the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress

from emu.bgp.frr_conf import session_ports
from emu.lab.frr.daemons import Daemons, prepare_files, require_frr, version
from emu.lab.frr.fib import FibWatch
from emu.lab.frr.mesh import Mesh
from emu.lab.ipc.jobs import RecordRoutes, RoutesRecorded
from emu.lab.supervisor import Supervisor
from emu.spec.route_recording import LinkEvent, RouteChange, RouteRecording, SessionChange
from emu.spec.scenario import spec_from_json
from topologies.graph import Topology

_NS = 1_000_000_000
_QUIET_NS = 600_000_000
"""Nothing more comes when no route has changed for so long although all was sent: a switch waits
for some 75 ms before it changes its routes, and so does each one on the way."""
_LONG_QUIET_NS = 12 * _NS
"""So long without any event when a session is not established: it will not be. A router advertises
itself every 10 s, and FRR's profile for data centers connects again after 10 s."""
_LONGEST_HOLD_S = 180
"""A session on a cable that fails silently lasts so long at most: FRR's traditional hold time."""
_SECONDS_TO_SETTLE = 60.0
"""The most for sessions to be established. FRR tries again every 10 s, some every 120."""
_SECONDS_FOR_BFD = 10.0
"""Sessions of BFD begin with those of BGP, and send a packet a second until they are up."""
_SECONDS_BETWEEN_LOOKS = 0.05
_NS_BETWEEN_BEATS = 2_000_000
Sessions = Set[tuple[str, str]]
"""Sessions by the switch and the interface of one end."""


def record_routes(job: RecordRoutes, supervisor: Supervisor) -> tuple[RoutesRecorded, list[int]]:
    """Does the job. Raises HostError, FabricError."""
    recorder = Recorder(spec_from_json(job.spec).topology.build(), job.confs)
    return RoutesRecorded(recorder.record(job.events, job.until_ns)), []


class Recorder:
    """FRR on the switches of a fabric. It runs until the process ends."""

    def __init__(self, topology: Topology, confs: dict[str, str]) -> None:
        """`confs`: the frr.conf of each switch. Raises HostError, FabricError, OSError."""
        require_frr()
        prepare_files()
        self._topology = topology
        self._confs = confs
        self._changes: list[RouteChange] = []
        self.mesh = Mesh(topology)
        self.watch = FibWatch(self.mesh.namespaces, self._changes.append)
        self.daemons = {
            switch: Daemons(switch, namespace, confs[switch])
            for switch, namespace in self.mesh.namespaces.items()
        }
        self._began_ns = time.monotonic_ns()
        for daemons in self.daemons.values():
            daemons.start_zebra()
        for daemons in self.daemons.values():
            daemons.start_others()
        for daemons in self.daemons.values():
            daemons.configure()

    def record(self, events: Sequence[LinkEvent], until_ns: int) -> RouteRecording:
        """Carries out the events of a run that lasts until `until_ns`. Raises FabricError."""
        configured = self._configured()
        self._settle(time.monotonic() + _SECONDS_TO_SETTLE, configured)
        if self._have_bfd_up(time.monotonic() + _SECONDS_FOR_BFD):
            self._settle(time.monotonic() + _SECONDS_TO_SETTLE, configured)
        usual = self._established().keys()
        first = {switch: dict(fib.told) for switch, fib in self.watch.fibs.items()}
        started_s = (self.watch.last_change_ns - self._began_ns) / _NS
        beat = _Heartbeat()
        events = [event for event in events if event.at_ns < until_ns]
        start_ns = time.monotonic_ns() - (events[0].at_ns if events else 0)
        for event in events:
            _sleep_until(start_ns + event.at_ns)
            self.mesh.set_links(event.down, event.silent)
        is_still = True
        if events:
            end_s = (start_ns + until_ns) / _NS
            is_silent = any(event.silent for event in events)
            latest_s = time.monotonic() + _SECONDS_TO_SETTLE + is_silent * _LONGEST_HOLD_S
            long_quiet_ns = _LONG_QUIET_NS + is_silent * _LONGEST_HOLD_S * _NS
            can_be = usual - self._cut(events[-1])
            is_still = self._settle(min(end_s, latest_s), can_be, long_quiet_ns)

        def in_run(at_ns: int) -> bool:
            return start_ns <= at_ns < start_ns + until_ns

        return RouteRecording(
            version(),
            self._confs,
            tuple(events),
            first,
            tuple(
                change._replace(at_ns=change.at_ns - start_ns)
                for change in self._changes
                if in_run(change.at_ns)
            ),
            tuple(
                change._replace(at_ns=change.at_ns - start_ns)
                for change in sorted(self._session_changes())
                if in_run(change.at_ns)
            ),
            started_s,
            None if is_still else until_ns,
            tuple(sorted(interface for _, interface in configured - usual)),
            beat.longest_ns,
        )

    # ---- whether all is over -----------------------------------------------

    def _settle(
        self, deadline_s: float, wanted: Sessions, long_quiet_ns: int = _LONG_QUIET_NS
    ) -> bool:
        """Waits until exactly the `wanted` sessions are established, all neighbours have told all,
        and no route changes any more; or until nothing has happened for long, if sessions fail.
        False: the deadline was first."""
        since_ns = told_ns = time.monotonic_ns()
        wait_s = max(daemons.advertisement_interval_s() for daemons in self.daemons.values())
        before: dict[tuple[str, str], bool] = {}
        while time.monotonic() < deadline_s:
            now_ns = time.monotonic_ns()
            established = self._established()
            if established != before:
                told_ns, before = now_ns, established
            quiet_ns = now_ns - max(since_ns, told_ns, self.watch.last_change_ns)
            is_done = established.keys() == wanted and all(established.values())
            if quiet_ns > wait_s * _NS + (_QUIET_NS if is_done else long_quiet_ns):
                self.watch.refuse_loss()
                return True
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return False

    def _have_bfd_up(self, deadline_s: float) -> bool:
        """Waits until all sessions of BFD are up, if there are any. Returns whether there are."""
        with_bfd = [daemons for daemons in self.daemons.values() if daemons.has_bfd]
        while time.monotonic() < deadline_s and not all(one.bfd_is_up() for one in with_bfd):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return bool(with_bfd)

    def _established(self) -> dict[tuple[str, str], bool]:
        """The sessions that are established now, and whether they have told all. Raises FabricError
        if a daemon has ended."""
        for daemons in self.daemons.values():
            daemons.refuse_dead()
            daemons.log.read()
        return {
            (switch, interface): session.has_told
            for switch, daemons in self.daemons.items()
            for interface, session in daemons.log.sessions.items()
            if session.established
        }

    def _configured(self) -> Sessions:
        """The sessions on all cables between switches, but for those that are shut down."""
        shut = {
            port
            for switch, daemons in self.daemons.items()
            for port in session_ports(self._topology, switch)
            if daemons.has_shut_down(port.interface)
        }
        shut |= {self._topology.peer[port] for port in shut}
        return {
            (switch, port.interface)
            for switch in self.daemons
            for port in session_ports(self._topology, switch)
            if port not in shut
        }

    def _cut(self, event: LinkEvent) -> Sessions:
        """The ends of cables that carry nothing."""
        cables = [self._topology.cables[number] for number in (*event.down, *event.silent)]
        return {(port.node, port.interface) for cable in cables for port in (cable.a, cable.b)}

    # ---- sessions ----------------------------------------------------------

    def _session_changes(self) -> Iterator[SessionChange]:
        for switch, daemons in self.daemons.items():
            daemons.log.read()
            for at_ns, interface, established in daemons.log.changes:
                yield SessionChange(at_ns, switch, interface, established)


class _Heartbeat:
    """How long the machine makes a thread wait that only sleeps."""

    def __init__(self) -> None:
        self.longest_ns = 0
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _beat(self) -> None:
        before = time.monotonic_ns()
        while True:
            time.sleep(_NS_BETWEEN_BEATS / _NS)
            now = time.monotonic_ns()
            self.longest_ns = max(self.longest_ns, now - before - _NS_BETWEEN_BEATS)
            before = now


def _sleep_until(moment_ns: int) -> None:
    with suppress(ValueError):  # it has passed
        time.sleep((moment_ns - time.monotonic_ns()) / _NS)
