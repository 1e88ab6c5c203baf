"""The clocks of interactive labs: what their emulated time is, and how it begins for NICs.

RealLabClock    time passes with CLOCK_MONOTONIC
ExactLabClock   the shim decides when time runs (exact_shim.py); users may stop it
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import NamedTuple

from emu.bindings.exact_driver import Wakes, shared_memory
from emu.clocks import EXACT, REAL, Clock
from emu.daemon.exact_shim import TIME_COLUMNS, TIME_ROW
from emu.daemon.fidelity import fidelity_between
from emu.errors import FabricError, UsageError
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
from emu.lab.ipc.queries import GetTiming
from emu.lab.ipc.rpc import RpcClient
from emu.lab.session import NS_UNTIL_START
from emu.measure.counter_layout import Layout
from emu.measure.observation import Observation
from emu.measure.records import Fidelity
from emu.measure.seqlock import SharedCounters
from emu.spec.scenario import Spec
from emu.units import PS_PER_NS, write_instant

Judge = Callable[[Observation], Fidelity]
"""The verdict on a workload, from the observation of its NICs."""

_SECONDS_BETWEEN_LOOKS = 0.005
_SECONDS_TO_STAND, _SECONDS_TO_ROUTE = 10.0, 60.0
"""Longer than a healthy lab takes to the next instant at which its processes can stand, and than
time then waits for OpenSM or FRR after a link has changed."""


class Beginning(NamedTuple):
    """When NICs begin."""

    at_ns: int
    """On CLOCK_MONOTONIC."""
    epoch_ps: int
    """In the lab's emulated time."""


class LabClock(ABC):
    """The emulated time of a lab. Any thread may call it."""

    clock: Clock

    @abstractmethod
    def now(self) -> LabTime:
        """The present time. Does not wait for another process."""

    @abstractmethod
    def pause(self) -> LabTime:
        """Lets time stand, and returns when it does. Raises UsageError."""

    @abstractmethod
    def go_on(self) -> LabTime:
        """Lets a paused time go on. Raises UsageError."""

    @abstractmethod
    def step(self, step_ps: int) -> LabTime:
        """Lets so much time pass, and returns when it has passed. Raises UsageError."""

    @abstractmethod
    def files_for_nics(self) -> AbstractContextManager[list[int]]:
        """The open files of the set-up of NICs that are about to begin."""

    @abstractmethod
    def files_for_programs(self) -> AbstractContextManager[list[int]]:
        """The same for NICs whose work programs post: the memory, and the eventfds `nudge` and
        `resume`."""

    @abstractmethod
    def begin(self, files: Sequence[int], *, endless: bool) -> Beginning:
        """Begins the time of NICs that were set up with these files. `endless`: no workload ends
        it. Raises FabricError."""

    @abstractmethod
    def join_program(self) -> list[int]:
        """Begins the time of NICs in a program. Returns descriptors of what they share with the
        shim: the memory, and the eventfds `nudge` and `resume`. Raises UsageError."""

    @abstractmethod
    def judge(self) -> Judge:
        """To be called before a workload: what judges it afterwards."""

    @abstractmethod
    def finish(self) -> None:
        """Returns when what a finished workload has sent has had its effect."""

    @abstractmethod
    def at_one_instant(self) -> AbstractContextManager[None]:
        """Lets time stand in the body, if it can, so that all processes are at one instant."""

    @abstractmethod
    def nics_ended(self) -> str:
        """Must be called after NICs have ended. Returns why the clock has failed, if it has."""


class RealLabClock(LabClock):
    clock = REAL

    def __init__(self, spec: Spec, shim: RpcClient, slowdown: float, began_ns: int) -> None:
        """`began_ns`: the lab's emulated time 0, on CLOCK_MONOTONIC."""
        self._spec = spec
        self._shim = shim
        self._slowdown = slowdown
        self._began_ns = began_ns

    def now(self) -> LabTime:
        return LabTime(RUNS, self._ps(time.monotonic_ns()))

    def pause(self) -> LabTime:
        raise self._cannot_stop()

    def go_on(self) -> LabTime:
        raise self._cannot_stop()

    def step(self, step_ps: int) -> LabTime:
        raise self._cannot_stop()

    def files_for_nics(self) -> AbstractContextManager[list[int]]:
        return nullcontext([])

    def files_for_programs(self) -> AbstractContextManager[list[int]]:
        return nullcontext([])

    def begin(self, files: Sequence[int], *, endless: bool) -> Beginning:
        at_ns = time.monotonic_ns() + NS_UNTIL_START
        return Beginning(at_ns, self._ps(at_ns))

    def join_program(self) -> list[int]:
        raise UsageError(f"the lab {self._spec.name} is on the real clock, which needs no joining")

    def judge(self) -> Judge:
        before = self._shim.ask(GetTiming())

        def judge(seen: Observation) -> Fidelity:
            after = self._shim.ask(GetTiming())
            return fidelity_between(self._spec, self._slowdown, before, after, seen)

        return judge

    def finish(self) -> None:
        pass

    def at_one_instant(self) -> AbstractContextManager[None]:
        return nullcontext()

    def nics_ended(self) -> str:
        return ""

    def _ps(self, at_ns: int) -> int:
        return round((at_ns - self._began_ns) / self._slowdown * PS_PER_NS)

    def _cannot_stop(self) -> UsageError:
        name = self._spec.name
        return UsageError(
            f"the lab {name} is on the real clock, which nothing stops; bring it up with "
            f"`emu up SPEC --clock exact`, after `emu down {name}`"
        )


class ExactLabClock(LabClock):
    clock = EXACT

    def __init__(self, spec: Spec, shim: RpcClient, file: int) -> None:
        """`file`: the table in which the shim publishes the state of its time."""
        self._name = spec.name
        self._hosts = len(spec.topology.build().hosts)
        self._shim = shim
        self._table = SharedCounters(file, Layout((TIME_ROW,), tuple(TIME_COLUMNS)))
        self._seconds_to_stand = _SECONDS_TO_STAND
        if spec.fabric_kind.has_subnet_manager or spec.has_bgp:
            self._seconds_to_stand += _SECONDS_TO_ROUTE
        self._why_failed = ""
        self._has_program = False

    def now(self) -> LabTime:
        now_ps, rows = self._table.read()
        return LabTime(STATES[rows[TIME_ROW]["state"][0]], now_ps, self._why_failed)

    # ---- what users request ------------------------------------------------

    def pause(self) -> LabTime:
        self._refuse_with_program()
        now = self._working()
        if now.state == PAUSED:
            raise UsageError(
                f"the lab {self._name} is paused already, at {write_instant(now.now_ps)}; "
                "`emu continue` goes on, `emu step 10us` lets so much time pass"
            )
        self._shim.ask(PauseTime())
        return self._when_it_stands()

    def go_on(self) -> LabTime:
        self._refuse_with_program()
        now = self._working()
        if now.state != PAUSED:
            raise UsageError(f"the lab {self._name} is not paused; `emu pause` stops its time")
        return self._shim.ask(ContinueTime())

    def step(self, step_ps: int) -> LabTime:
        self._refuse_with_program()
        now = self._working()
        if now.state == RUNS:
            raise UsageError(f"the time of the lab {self._name} runs; `emu pause` stops it first")
        self._shim.ask(StepTime(step_ps))
        return self._when_it_stands(soon=False)

    def _refuse_with_program(self) -> None:
        if self._has_program:
            raise UsageError(
                f"a program is the NICs of the lab {self._name}, and time passes only while the "
                "program waits; write pauses into the program, and faults into its spec"
            )

    def _working(self) -> LabTime:
        """The present time. Raises FabricError if the clock has failed."""
        now = self.now()
        if now.state == FAILED:
            raise self._has_failed()
        return now

    def _has_failed(self) -> FabricError:
        why = self._why_failed or "see `emu status`"
        return FabricError(
            f"the time of the lab {self._name} has ended ({why}); end it with `emu down "
            f"{self._name}`, and bring it up again"
        )

    def _when_it_stands(self, *, soon: bool = True) -> LabTime:
        """The time, once it stands. Raises FabricError if that should be `soon` and is not."""
        deadline = time.monotonic() + self._seconds_to_stand
        while self.now().state == RUNS:
            if soon and time.monotonic() > deadline:
                raise FabricError(
                    f"the time of the lab {self._name} has not come to stand for "
                    f"{self._seconds_to_stand:g} s: one of its processes was stopped, or the "
                    "machine is overloaded; continue the process (`kill -CONT`), or end the "
                    f"lab with `emu down {self._name}`"
                )
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return self._working()

    # ---- NICs --------------------------------------------------------------

    @contextmanager
    def files_for_nics(self) -> Iterator[list[int]]:
        self._working()
        self._refuse_second()
        memory = shared_memory(self._hosts)
        try:
            yield [memory]
        finally:
            os.close(memory)

    @contextmanager
    def files_for_programs(self) -> Iterator[list[int]]:
        with self.files_for_nics() as (memory,), closing(Wakes.new()) as wakes:
            yield [memory, wakes.nudge, wakes.resume]

    def begin(self, files: Sequence[int], *, endless: bool) -> Beginning:
        joined = self._shim.ask(JoinNics(endless=endless), files)
        return Beginning(time.monotonic_ns(), joined.now_ps)

    def join_program(self) -> list[int]:
        with self.files_for_programs() as files:
            self._shim.ask(JoinNics(endless=True), files)
            self._has_program = True
            return [*map(os.dup, files)]

    def _refuse_second(self) -> None:
        if self._has_nics():
            raise UsageError(f"a program is the NICs of the lab {self._name}; end it first")

    def judge(self) -> Judge:
        return lambda seen: Fidelity()

    def finish(self) -> None:
        while self._has_nics() and self.now().state != FAILED:
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _has_nics(self) -> bool:
        return bool(self._table.read()[1][TIME_ROW]["joined"][0])

    @contextmanager
    def at_one_instant(self) -> Iterator[None]:
        self._refuse_with_program()
        state = self.now().state
        may_go_on = state == RUNS or (state == STANDS and self._has_nics())
        if not may_go_on:
            yield
            return
        self._shim.ask(PauseTime())
        try:
            self._when_it_stands()
            yield
        finally:
            self._shim.ask(ContinueTime())

    def nics_ended(self) -> str:
        self._why_failed = self._shim.ask(LeaveNics()).why_failed
        return self._why_failed
