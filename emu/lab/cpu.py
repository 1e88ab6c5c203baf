"""Who uses the machine's processors while a lab is busy, and when.

A thread looks every now and then. When it has looked very often, every second look is
forgotten and it looks half as often, so that a run of any length has some hundred looks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from os import sysconf
from pathlib import Path

from emu.measure.cpu import CpuSamples

_CPUCLOCK_SCHED = 2  # linux/posix-timers.h
_BUSY, _STOLEN = "busy", "stolen"


_FIRST_INTERVAL_SECONDS = 0.05
_MOST_LOOKS = 512


class SampleLog:
    """What was seen so far: the times, and for each of them who has used how much."""

    def __init__(self) -> None:
        self.interval_seconds = _FIRST_INTERVAL_SECONDS
        self._seen: list[tuple[int, dict[str, float]]] = []

    def add(self, time_ns: int, used: dict[str, float]) -> None:
        """One right behind another takes its place: the kernel's hundredths tell nothing then."""
        if self._seen[1:] and time_ns - self._seen[-1][0] < self.interval_seconds * 1e9 / 2:
            self._seen.pop()
        self._seen.append((time_ns, used))
        if len(self._seen) == _MOST_LOOKS:
            self._seen = self._seen[::2]
            self.interval_seconds *= 2

    def samples(self) -> CpuSamples:
        return CpuSamples(
            tuple(time_ns for time_ns, _ in self._seen),
            {name: tuple(own[name] for _, own in self._seen) for name in self._seen[-1][1]},
        )


class CpuMeter:
    """Counts from the moment it is made."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        """`pids`: a name for each process to watch."""
        self._pids = dict(pids)
        self._before = self._now()

    def used(self) -> dict[str, float]:
        """Seconds of processor time since then, by name.

        All `other` programs together have a name as well, and so has what was
        `stolen`: the time that this machine had work to do while its host did not
        let it run. Both are counted in the kernel's hundredths of a second.
        """
        spent = {name: now - self._before[name] for name, now in self._now().items()}
        busy = spent.pop(_BUSY)
        stolen = spent.pop(_STOLEN)
        return {**spent, "other": max(0.0, busy - sum(spent.values())), _STOLEN: stolen}

    @contextmanager
    def sampling(self, start_ns: int) -> Iterator[SampleLog]:
        """Looks as its body begins, while it runs, and at its end.

        `start_ns`: the emulated time 0, by CLOCK_MONOTONIC.
        """
        looks, over = SampleLog(), threading.Event()

        def look() -> None:
            looks.add(time.monotonic_ns() - start_ns, self.used())

        def watch() -> None:
            with suppress(OSError):  # a process has died: whoever waits for it tells
                while not over.wait(looks.interval_seconds):
                    look()

        look()
        watcher = threading.Thread(target=watch, name="processors", daemon=True)
        watcher.start()
        try:
            yield looks
        finally:
            over.set()
            watcher.join()
        look()

    def _now(self) -> dict[str, float]:
        return {**_machine(), **{name: _seconds(pid) for name, pid in self._pids.items()}}


def _machine() -> dict[str, float]:
    """What all processors together have worked, and what was stolen from them; proc(5)."""
    line = Path("/proc/stat").read_text().partition("\n")[0]
    user, nice, system, _idle, _iowait, irq, softirq, stolen = map(int, line.split()[1:9])
    tick = 1 / sysconf("SC_CLK_TCK")
    return {_BUSY: (user + nice + system + irq + softirq) * tick, _STOLEN: stolen * tick}


def _seconds(pid: int) -> float:
    """Of all threads, those that have ended too, by the clock that counts it."""
    return time.clock_gettime(_clock_of(pid))


def _clock_of(pid: int) -> int:
    """As `clock_getcpuclockid(3)`, which Python does not have, makes it."""
    return ~pid << 3 | _CPUCLOCK_SCHED
