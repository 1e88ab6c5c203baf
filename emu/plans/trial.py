"""One run of a case: a fabric on the virtual clock that is stepped, and whose counters are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from emu.measure.raw_counters import RawCounters
from emu.plans.case import Inconclusive
from emu.plans.pauses import TimedFrame
from emu.runtime.virtual import VirtualFabric
from emu.spec.scenario import Spec


class Trial:
    """A running fabric. Use it as a context manager."""

    def __init__(self, spec: Spec, frames: Iterable[TimedFrame] = ()) -> None:
        """`frames`: what testers put on their cables besides the traffic of the spec."""
        self._topology = spec.topology.build()
        self._run = VirtualFabric(spec, self._topology)
        self._frames = sorted(frames, key=lambda frame: frame.at_ns, reverse=True)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._run)
        self._run.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raises Inconclusive where frames are missing for which the emulator had no memory."""
        exhausted = self._run.observe().frames_exhausted
        self._stack.close()
        if exhausted and kind is None:
            raise Inconclusive(f"{exhausted} frames found no room in the emulator's memory")

    @property
    def now_ns(self) -> int:
        return self._run.now_ns

    def run_until(self, until_ns: int) -> None:
        """Runs, and puts in the frames that are due."""
        while self._frames and self._frames[-1].at_ns <= until_ns:
            frame = self._frames.pop()
            self._run.run_until(max(frame.at_ns, self.now_ns))
            self._run.inject(frame.port, frame.content)
        self._run.run_until(until_ns)

    def wait_for(self, condition: Callable[[], bool], until_ns: int, step_ns: int) -> int | None:
        """The time at which the condition was first seen to hold, at steps of `step_ns`; None: not
        by `until_ns`."""
        while not condition():
            if self.now_ns >= until_ns:
                return None
            self.run_until(min(until_ns, self.now_ns + step_ns))
        return self.now_ns

    def counters(self, port: str) -> RawCounters:
        """A port's counters by the core's names, with a value for each priority."""
        named = self._topology.port_named[port]
        return self._run.fabric.counter_table([named])[port]

    def count(self, port: str, name: str, priority: int) -> int:
        """A counter of one priority at a port."""
        return self.counters(port)[name][priority]

    def dropped(self, priority: int) -> int:
        """Packets of a priority that ended anywhere in the fabric."""
        return self.total("dropped", priority)

    def total(self, name: str, priority: int) -> int:
        """A counter of one priority, of all ports of switches and hosts."""
        ports = self._topology.peer
        return int(self._run.fabric.counter_table(ports).counter(name)[:, priority].sum())

    def queued_bytes(self, port: str, queue: int) -> int:
        """Bytes in an egress queue now."""
        return self._run.port(port).queued_bytes[queue]

    def is_paused(self, port: str, priority: int) -> bool:
        """Whether the far end has paused the port now."""
        return self._run.port(port).paused[priority]
