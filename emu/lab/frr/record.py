"""Records what FRR does when cables of a fabric are lost and come back.

    start ─▶ all sessions established, no route changes any more ─▶ time 0 of the run
    event ─▶ routes change in kernels ─▶ event ─▶ ... ─▶ no route changes any more, or the run ends

Time is that of the machine, at which FRR's timers run. Times in the recording are since the start
of the run.

Without a run, a recording is made of each of several states of the links: FRR starts once, and the
next state follows when FRR has answered the one before. Times are then since that state's begin.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from math import inf

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
from emu.lab.ipc.jobs import AnswersRecorded, RecordAnswers, RecordRoutes, RoutesRecorded
from emu.lab.supervisor import Supervisor
from emu.spec.route_recording import Fib, LinkEvent, RouteChange, RouteRecording
from emu.spec.scenario import spec_from_json
from topologies.graph import Topology

_LONGEST_HOLD_S = 180
"""A session on a cable that fails silently lasts so long at most: FRR's traditional hold time."""
_NS_BETWEEN_BEATS = 2_000_000


def record_routes(job: RecordRoutes, supervisor: Supervisor) -> tuple[RoutesRecorded, list[int]]:
    """Does the job. Raises HostError, FabricError."""
    recorder = Recorder(spec_from_json(job.spec).topology.build(), job.confs)
    return RoutesRecorded(recorder.record(job.events, job.until_ns)), []


def record_answers(job: RecordAnswers, supervisor: Supervisor) -> tuple[AnswersRecorded, list[int]]:
    """Does the job. Raises HostError, FabricError."""
    recorder = Recorder(spec_from_json(job.spec).topology.build(), job.confs)
    return AnswersRecorded(tuple(recorder.record_answers(job.states))), []


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
        self._start()
        first = self._told()
        beat = _Heartbeat()
        events = [event for event in events if event.at_ns < until_ns]
        start_ns = time.monotonic_ns() - (events[0].at_ns if events else 0)
        for event in events:
            _sleep_until(start_ns + event.at_ns)
            self._mesh.set_links(event.down, event.silent)
        is_still = not events or self._settle_after(events, (start_ns + until_ns) / NS)
        return self._recording(
            events, first, (start_ns, start_ns + until_ns), None if is_still else until_ns, beat
        )

    def record_answers(self, states: Sequence[LinkEvent]) -> Iterator[RouteRecording]:
        """Brings about each state of the links, and waits until FRR has answered it. Raises
        FabricError."""
        self._start()
        for before, state in pairwise((LinkEvent(0, ()), *states)):
            first = self._told()
            beat = _Heartbeat()
            start_ns = time.monotonic_ns()
            self._mesh.set_links(state.down, state.silent)
            is_still = self._settle_after([before, state], inf)
            end_ns = time.monotonic_ns()
            holds_until_ns = None if is_still else end_ns - start_ns
            event = state._replace(at_ns=0)
            yield self._recording([event], first, (start_ns, end_ns), holds_until_ns, beat)

    def _start(self) -> None:
        """Waits for FRR's first routes."""
        self._frr.settle_at_start()
        self._usual = self._frr.established().keys()
        self._started_s = (self._frr.watch.last_change_ns - self._frr.began_ns) / NS

    def _told(self) -> dict[str, Fib]:
        """The routes of each switch now."""
        return {switch: dict(fib.told) for switch, fib in self._frr.watch.fibs.items()}

    def _recording(
        self,
        events: Sequence[LinkEvent],
        first: dict[str, Fib],
        span_ns: tuple[int, int],
        holds_until_ns: int | None,
        beat: _Heartbeat,
    ) -> RouteRecording:
        """What happened in a span of time, from `first` on. Times are since its begin."""
        start_ns, end_ns = span_ns
        beat.stop()
        return RouteRecording(
            version(),
            self._confs,
            tuple(events),
            first,
            tuple(
                change._replace(at_ns=change.at_ns - start_ns)
                for change in tuple(self._changes)
                if start_ns <= change.at_ns < end_ns
            ),
            tuple(
                change._replace(at_ns=change.at_ns - start_ns)
                for change in sorted(self._frr.session_changes())
                if start_ns <= change.at_ns < end_ns
            ),
            self._started_s,
            holds_until_ns,
            tuple(sorted(interface for _, interface in self._frr.configured - self._usual)),
            beat.longest_ns,
        )

    def _settle_after(self, events: Sequence[LinkEvent], end_s: float) -> bool:
        """Waits for what follows the last event, to the end of the run at most. Returns whether all
        is over."""
        is_silent = any(event.silent for event in events)
        latest_s = time.monotonic() + SECONDS_TO_SETTLE + is_silent * _LONGEST_HOLD_S
        long_quiet_ns = LONG_QUIET_NS + is_silent * _LONGEST_HOLD_S * NS
        can_be = self._usual - self._cut(events[-1])
        return self._frr.settle(min(end_s, latest_s), can_be, long_quiet_ns)

    def _cut(self, event: LinkEvent) -> Sessions:
        """The ends of cables that carry nothing."""
        cables = [self._topology.cables[number] for number in (*event.down, *event.silent)]
        return {(port.node, port.interface) for cable in cables for port in (cable.a, cable.b)}


class _Heartbeat:
    """How long the machine makes a thread wait that only sleeps."""

    def __init__(self) -> None:
        self.longest_ns = 0
        self._over = False
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def stop(self) -> None:
        self._over = True

    def _beat(self) -> None:
        before = time.monotonic_ns()
        while not self._over:
            time.sleep(_NS_BETWEEN_BEATS / NS)
            now = time.monotonic_ns()
            self.longest_ns = max(self.longest_ns, now - before - _NS_BETWEEN_BEATS)
            before = now


def _sleep_until(moment_ns: int) -> None:
    with suppress(ValueError):  # it has passed
        time.sleep((moment_ns - time.monotonic_ns()) / NS)
