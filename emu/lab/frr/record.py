"""Records what FRR does when cables of a fabric are lost and come back.

    start ─▶ all sessions established, no route changes any more ─▶ time 0 of the run
    event ─▶ routes change in kernels ─▶ event ─▶ ... ─▶ no route changes any more, or the run ends

Time is that of the machine, at which FRR's timers run. Times in the recording are since the start
of the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from emu.lab.frr.clock import MachineClock
from emu.lab.frr.control_plane import (
    LONG_QUIET_NS,
    NS,
    SECONDS_TO_SETTLE,
    ControlPlane,
    Sessions,
)
from emu.lab.frr.daemons import version
from emu.lab.frr.mesh import Mesh
from emu.lab.ipc.jobs import RecordRoutes, RoutesRecorded
from emu.lab.supervisor import Supervisor
from emu.spec.route_recording import LinkEvent, RouteChange, RouteRecording
from emu.spec.scenario import spec_from_json
from topologies.graph import Topology

_LONGEST_HOLD_S = 180
"""A session on a cable that fails silently lasts so long at most: FRR's traditional hold time."""
_NS_BETWEEN_BEATS = 2_000_000


def record_routes(job: RecordRoutes, supervisor: Supervisor) -> tuple[RoutesRecorded, list[int]]:
    """Does the job. Raises HostError, FabricError."""
    recorder = Recorder(spec_from_json(job.spec).topology.build(), job.confs)
    return RoutesRecorded(recorder.record(job.events, job.until_ns)), []


class Recorder:
    """FRR on the switches of a fabric. It runs until the process ends."""

    def __init__(self, topology: Topology, confs: dict[str, str]) -> None:
        """`confs`: the frr.conf of each switch. Raises HostError, FabricError, OSError."""
        self._topology = topology
        self._confs = confs
        self._changes: list[RouteChange] = []
        self._mesh = Mesh(topology)
        self._frr = ControlPlane(
            topology, confs, self._mesh.namespaces, self._changes.append, MachineClock()
        )

    def record(self, events: Sequence[LinkEvent], until_ns: int) -> RouteRecording:
        """Carries out the events of a run that lasts until `until_ns`. Raises FabricError."""
        self._frr.settle_at_start()
        watch = self._frr.watch
        usual = self._frr.established().keys()
        first = {switch: dict(fib.told) for switch, fib in watch.fibs.items()}
        started_s = (watch.last_change_ns - self._frr.began_ns) / NS
        beat = _Heartbeat()
        events = [event for event in events if event.at_ns < until_ns]
        start_ns = time.monotonic_ns() - (events[0].at_ns if events else 0)
        for event in events:
            _sleep_until(start_ns + event.at_ns)
            self._mesh.set_links(event.down, event.silent)
        is_still = not events or self._settle_after(events, usual, (start_ns + until_ns) / NS)

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
                for change in sorted(self._frr.session_changes())
                if in_run(change.at_ns)
            ),
            started_s,
            None if is_still else until_ns,
            tuple(sorted(interface for _, interface in self._frr.configured - usual)),
            beat.longest_ns,
        )

    def _settle_after(self, events: Sequence[LinkEvent], usual: Sessions, end_s: float) -> bool:
        """Waits for what follows the last event, to the end of the run at most. Returns whether all
        is over."""
        is_silent = any(event.silent for event in events)
        latest_s = time.monotonic() + SECONDS_TO_SETTLE + is_silent * _LONGEST_HOLD_S
        long_quiet_ns = LONG_QUIET_NS + is_silent * _LONGEST_HOLD_S * NS
        can_be = usual - self._cut(events[-1])
        return self._frr.settle(min(end_s, latest_s), can_be, long_quiet_ns)

    def _cut(self, event: LinkEvent) -> Sessions:
        """The ends of cables that carry nothing."""
        cables = [self._topology.cables[number] for number in (*event.down, *event.silent)]
        return {(port.node, port.interface) for cable in cables for port in (cable.a, cable.b)}


class _Heartbeat:
    """How long the machine makes a thread wait that only sleeps."""

    def __init__(self) -> None:
        self.longest_ns = 0
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _beat(self) -> None:
        before = time.monotonic_ns()
        while True:
            time.sleep(_NS_BETWEEN_BEATS / NS)
            now = time.monotonic_ns()
            self.longest_ns = max(self.longest_ns, now - before - _NS_BETWEEN_BEATS)
            before = now


def _sleep_until(moment_ns: int) -> None:
    with suppress(ValueError):  # it has passed
        time.sleep((moment_ns - time.monotonic_ns()) / NS)
