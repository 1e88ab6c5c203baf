"""How time passes for a program that uses verbs.

    virtual    time passes only while the program awaits something: the fabric then
               runs in this process, up to the next completion
    exact      the same with the switches in a lab (`emu.rdma.exact_clock`)
    real       the NICs run in a thread of their own, whatever the program does
               (`emu.rdma.real_clock`)

On all clocks, calls from Python take effect between two packets. A task that waits for a
completion polls again after every completion in the fabric.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import ceil, isinf
from typing import TypeVar

from emu._core import ffi, lib
from emu.bindings.fabric import Fabric

T = TypeVar("T")

_STEP_NS = 10_000
"""The emulated time of a step. The program's other tasks can run between two steps."""


class Clock(ABC):
    """The fabric's time, and a flag that is set when anything completes."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.core = lib.fabric_clock(fabric.core, 0)
        self.event = ffi.new("bool *")
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []

    @property
    def now_ns(self) -> int:
        """Emulated time."""
        return self.fabric.now_ns

    @property
    def now_ps(self) -> int:
        return int(lib.fabric_now(self.fabric.core))

    @abstractmethod
    def frozen(self) -> AbstractContextManager[None]:
        """A context in which no emulated time passes."""

    @abstractmethod
    def close(self) -> None:
        """Stops the clock, and waits for its thread if it has one."""

    async def until(self, poll: Callable[[], T | None], deadline_ns: float) -> T | None:
        """The result of `poll`, which is called again after every completion; None after the
        deadline, which is rounded up to whole nanoseconds."""
        deadline_ns = deadline_ns if isinf(deadline_ns) else ceil(deadline_ns)
        while True:
            with self.frozen():
                found, now_ns = poll(), self.now_ns
            if found is not None or now_ns >= deadline_ns:
                return found
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((deadline_ns, future))
            self._go_on()
            await future

    @abstractmethod
    def _go_on(self) -> None:
        """Lets time pass, because a task has begun to wait."""

    def _wake(self) -> None:
        """Wakes all waiting tasks."""
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_result(None)


class SteppedClock(Clock):
    """Time passes in steps, between the turns of the program's tasks."""

    def __init__(self, fabric: Fabric) -> None:
        super().__init__(fabric)
        self._stepping = False

    def frozen(self) -> AbstractContextManager[None]:
        return nullcontext()

    @abstractmethod
    def _run(self, until_ps: int) -> None:
        """Lets time pass until then, or until `event` is set."""

    def _go_on(self) -> None:
        if not self._stepping:
            self._stepping = True
            asyncio.get_running_loop().call_soon(self._step)

    def _step(self) -> None:
        """Runs the fabric for one step, after other tasks have had a turn."""
        self._stepping = False
        waiting = [deadline for deadline, future in self._waiting if not future.done()]
        if not waiting:
            return
        until_ns = min(self.now_ns + _STEP_NS, *waiting)
        self.event[0] = False
        try:
            self._run(round(until_ns * 1000))
        except Exception as error:
            self._fail(error)
            return
        if self.event[0] or self.now_ns >= min(waiting):
            self._wake()
        else:
            self._go_on()

    def _fail(self, error: Exception) -> None:
        """Raises the error in all waiting tasks."""
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)


class VirtualClock(SteppedClock):
    """The whole fabric is in this process."""

    def __init__(self, fabric: Fabric, on_step: Callable[[], None] = lambda: None) -> None:
        super().__init__(fabric)
        self._on_step = on_step

    def close(self) -> None:
        """Does nothing, because this clock has no thread."""

    def _run(self, until_ps: int) -> None:
        lib.fabric_run_to_event(self.fabric.core, until_ps, self.event)
        self._on_step()
