"""The shim of an interactive lab on the exact clock: it decides when emulated time runs.

        ┌───── Pause ──────┐           Step: runs for that time, then it is paused
        │                  ▼
      runs ◀─ Continue ─ paused
      ▲  │
      │  ▼   traffic is over, and the last frame has arrived
     stands

Time runs while NICs have joined for a workload, frames of programs are on the way, or switches are
about to change their routes. If a program posts the NICs' work, time stands while the program
decides what comes next. Then the shim stops after some milliseconds, copies its counters to
shared memory, and answers queries. So each answer belongs to one instant; while time stands, it is
the same one in all processes.

When a link goes down or comes back, time waits until the lab has answered with new routes, which
switches use `convergence` after the change (emu.lab.routing_link).
"""

from __future__ import annotations

import os
import select
import socket

from emu.bindings.capture import captured_ports
from emu.bindings.exact_driver import ExactDriver, Outcome, Wakes
from emu.bindings.fabric import Fabric
from emu.daemon.taps import Taps
from emu.errors import FabricError
from emu.lab.fault_changes import change_faults
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.lab.ipc.lab_time import (
    FAILED,
    PAUSED,
    RUNS,
    STANDS,
    STATES,
    ContinueTime,
    JoinNics,
    LabTime,
    LeaveNics,
    PauseTime,
    StepTime,
)
from emu.lab.ipc.messages import Done, Start
from emu.lab.ipc.queries import ClearFault, FaultList, GetPorts, ListFaults, SetFault, Tap
from emu.lab.ipc.setup import ShimReady
from emu.lab.routing_link import RouteChanges
from emu.lab.show import ports_snapshot
from emu.measure.counter_table import PORT
from emu.measure.seqlock import Columns, SharedCounters
from emu.spec.fault.kind import LostLinks
from emu.spec.outages import slowest_convergence_ps

TIME_ROW = "time"
TIME_COLUMNS: Columns = [("state", 1), ("joined", 1)]
"""`state`: an index into STATES. `joined`: whether NICs have joined."""
_SECONDS_A_TIME = 0.02
_SECONDS_BETWEEN_PUSHES = 0.02


def serve_exact_shim(
    channel: Channel,
    driver: ExactDriver,
    fabric: Fabric,
    wire: socket.socket,
    routing: RouteChanges,
) -> None:
    """Emulates and answers queries, from the end of the set-up until the lab ends."""
    shim = _Shim(channel, driver, fabric, routing)
    channel.send(ShimReady(shim.ports.layout), [shim.ports.file, shim.time_file])
    channel.expect(Start)
    while True:
        shim.go_on()
        if channel.has_more():
            shim.answer_next()
        elif not shim.time.can_run:
            awaited = [channel.fileno(), routing.fileno()]
            if not shim.time.runs:
                awaited += [wire.fileno(), *shim.time.resumes]
            seconds = _SECONDS_BETWEEN_PUSHES if shim.taps.has_viewers else None
            readable, _, _ = select.select(awaited, [], [], seconds)
            if wire.fileno() in readable:
                shim.time.begin()


class EmulatedTime:
    """Runs the switches, and lets their time stand."""

    def __init__(self, driver: ExactDriver, fabric: Fabric, routing: RouteChanges) -> None:
        self._driver = driver
        self._fabric = fabric
        self._routing = routing
        driver.stop_at_link_changes()
        self._outcome = Outcome.STANDS
        self._has_begun = False
        self._holds_at_ps: int | None = None
        """Up to when time runs; None: it is not paused."""
        self._why_failed = ""
        self.joined = False
        """Whether NICs have joined."""

    @property
    def state(self) -> str:
        if self._why_failed:
            return FAILED
        if self._outcome is not Outcome.STANDS:
            return RUNS
        if self._holds_at_ps is None:
            return STANDS
        return PAUSED if self._fabric.now_ps >= self._holds_at_ps else RUNS

    @property
    def runs(self) -> bool:
        return self.state == RUNS

    @property
    def can_run(self) -> bool:
        """Whether time runs, and does not wait for new routes."""
        return self.runs and not self._routing.awaits_answer

    @property
    def resumes(self) -> list[int]:
        """Descriptors that are readable when the NICs of a program go on."""
        return [self._driver.resume] if self._driver.resume >= 0 else []

    @property
    def now(self) -> LabTime:
        return LabTime(self.state, self._fabric.now_ps, self._why_failed)

    def begin(self) -> None:
        """Begins the emulation. Not before there is something to run for: NICs that join at time 0
        then receive what switches send first."""
        if not self._has_begun:
            self._has_begun = True
            self._fabric.start()

    def run(self) -> None:
        """Runs for a short time, if there is something to run for."""
        self._routing.take_answers(self._fabric)
        self._driver.run_on(self._routing.in_force_ps)
        if self._why_failed or not self._has_begun or self._routing.awaits_answer:
            return
        try:
            self._outcome = self._driver.run(seconds=_SECONDS_A_TIME)
        except FabricError as error:
            self._why_failed = str(error)
            self.leave()
        if self._outcome is Outcome.LINKS_CHANGED:
            self._driver.empty_datapath()  # of packets without hints, before its tables change
            self._routing.report(self._fabric)
        self._routing.rely_on_tables(self._fabric)
        if self._outcome is Outcome.FINISHED:
            self.leave()

    def run_until_rerouted(self) -> None:
        """Also without traffic, runs until switches use the routes around links that change now. If
        time is paused, it does so later."""
        self._driver.run_on(self._fabric.now_ps + slowest_convergence_ps(self._fabric.spec))
        if self._holds_at_ps is None:
            self.begin()
            self._outcome = Outcome.PAUSED

    def changed(self) -> None:
        """Must be called after the fabric was changed while time is to stand."""
        self._driver.changed()

    def pause(self) -> None:
        self._hold(0)

    def go_on(self) -> None:
        self._hold(None)

    def step(self, step_ps: int) -> None:
        self.begin()
        self._hold(self._fabric.now_ps + step_ps)

    def join(self, memory: int, wakes: Wakes | None, *, endless: bool) -> None:
        self._driver.join(memory, wakes, endless=endless)
        self.joined = True
        self.begin()
        self._outcome = Outcome.PAUSED

    def leave(self) -> None:
        if self.joined:
            self._driver.leave()
            self.joined = False
            self._outcome = Outcome.PAUSED

    def _hold(self, at_ps: int | None) -> None:
        self._holds_at_ps = at_ps
        self._driver.hold(at_ps)
        self._outcome = Outcome.PAUSED if self._has_begun else Outcome.STANDS


class _Shim:
    """The running switches, and what others see of them."""

    def __init__(
        self, channel: Channel, driver: ExactDriver, fabric: Fabric, routing: RouteChanges
    ) -> None:
        self._channel = channel
        self._fabric = fabric
        self._seen = fabric.topology.switch_ports
        names = [fabric.topology.port_name[port] for port in self._seen]
        self.ports = SharedCounters.new(names, [*PORT.cells.items()])
        self._time_table = SharedCounters.new([TIME_ROW], TIME_COLUMNS)
        self.time = EmulatedTime(driver, fabric, routing)
        self.taps = Taps(fabric, captured_ports(fabric.spec, fabric.topology))

    @property
    def time_file(self) -> int:
        return self._time_table.file

    def go_on(self) -> None:
        self.time.run()
        self.taps.distribute()
        self.taps.take_unused_off()
        self._publish()

    def answer_next(self) -> None:
        """Answers the next query. What it changes is published before the answer."""
        answer = self._answer(self._channel.receive())
        self._publish()
        self._channel.send(answer)

    def _answer(self, query: Message) -> Message:
        match query:
            case GetPorts():
                return ports_snapshot(self._fabric)
            case Tap(port, since_start):
                (line,) = self._channel.take_files()
                topology = self._fabric.topology
                self.taps.put_on(topology.port_named[port], line, since_start=since_start)
                return Done()
            case ListFaults():
                return change_faults(self._fabric, query)
            case SetFault(name) | ClearFault(name):
                return self._change_fault(name, query)
        self._change_time(query)
        return self.time.now

    def _change_fault(self, name: str, query: Message) -> FaultList:
        before = self._fabric.faults[:]
        changed = change_faults(self._fabric, query)
        named = [one.fault.what for one in (*before, *self._fabric.faults) if one.name == name]
        self.time.changed()
        if any(isinstance(what, LostLinks) for what in named):
            self.time.run_until_rerouted()
        return changed

    def _change_time(self, query: Message) -> None:
        match query:
            case PauseTime():
                self.time.pause()
            case ContinueTime():
                self.time.go_on()
            case StepTime(step_ps):
                self.time.step(step_ps)
            case JoinNics(endless):
                memory, *eventfds = self._channel.take_files()
                self.time.join(memory, Wakes(*eventfds) if eventfds else None, endless=endless)
                for file in (memory, *eventfds):
                    os.close(file)
            case LeaveNics():
                self.time.leave()

    def _publish(self) -> None:
        now_ps = self._fabric.now_ps
        self._fabric.post_counters(self.ports.begin(now_ps), self._seen)
        self.ports.publish()
        row = self._time_table.begin(now_ps)
        row[0] = STATES.index(self.time.state), self.time.joined
        self._time_table.publish()
