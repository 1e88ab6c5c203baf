"""Samples of the processor time that a lab's processes and other programs use.

A thread takes the samples. When there are `_MOST_SAMPLES`, every second one is dropped and the
interval doubles, so that a run of any length has a few hundred samples.
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
_MOST_SAMPLES = 512


class SampleLog:
    """The samples so far: a time, and the seconds that each process has used until then."""

    def __init__(self) -> None:
        self.interval_seconds = _FIRST_INTERVAL_SECONDS
        self._samples: list[tuple[int, dict[str, float]]] = []

    def add(self, time_ns: int, used: dict[str, float]) -> None:
        """Adds a sample. It replaces the last one if that is less than half an interval old: the
        kernel counts in hundredths of a second, too coarse for a shorter time."""
        if self._samples[1:] and time_ns - self._samples[-1][0] < self.interval_seconds * 1e9 / 2:
            self._samples.pop()
        self._samples.append((time_ns, used))
        if len(self._samples) == _MOST_SAMPLES:
            self._samples = self._samples[::2]
            self.interval_seconds *= 2

    def samples(self) -> CpuSamples:
        return CpuSamples(
            tuple(time_ns for time_ns, _ in self._samples),
            {name: tuple(own[name] for _, own in self._samples) for name in self._samples[-1][1]},
        )


class CpuMeter:
    """Measures processor time from its construction on."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        """`pids`: the processes to measure, by name."""
        self._pids = dict(pids)
        self._before = self._now()

    def used(self) -> dict[str, float]:
        """Seconds of processor time since the construction, by name.

        `other` is the time of all other programs together. `stolen` is the time in which this
        virtual machine had work to do but its host did not run it. The kernel counts both in
        hundredths of a second.
        """
        spent = {name: now - self._before[name] for name, now in self._now().items()}
        busy = spent.pop(_BUSY)
        stolen = spent.pop(_STOLEN)
        return {**spent, "other": max(0.0, busy - sum(spent.values())), _STOLEN: stolen}

    @contextmanager
    def sampling(self, start_ns: int) -> Iterator[SampleLog]:
        """Takes samples when its body begins, while it runs, and when it ends.

        `start_ns`: the emulated time 0, by CLOCK_MONOTONIC.
        """
        samples, over = SampleLog(), threading.Event()

        def take_sample() -> None:
            samples.add(time.monotonic_ns() - start_ns, self.used())

        def watch() -> None:
            with suppress(OSError):  # a process has died; the supervisor reports that
                while not over.wait(samples.interval_seconds):
                    take_sample()

        take_sample()
        watcher = threading.Thread(target=watch, name="processors", daemon=True)
        watcher.start()
        try:
            yield samples
        finally:
            over.set()
            watcher.join()
        take_sample()

    def _now(self) -> dict[str, float]:
        return {**_machine(), **{name: _seconds(pid) for name, pid in self._pids.items()}}


def _machine() -> dict[str, float]:
    """The busy and the stolen seconds of all processors together; proc(5)."""
    line = Path("/proc/stat").read_text().partition("\n")[0]
    user, nice, system, _idle, _iowait, irq, softirq, stolen = map(int, line.split()[1:9])
    tick = 1 / sysconf("SC_CLK_TCK")
    return {_BUSY: (user + nice + system + irq + softirq) * tick, _STOLEN: stolen * tick}


def _seconds(pid: int) -> float:
    """The processor time of a process: of all its threads, ended ones included."""
    return time.clock_gettime(_clock_of(pid))


def _clock_of(pid: int) -> int:
    """The clock id that `clock_getcpuclockid(3)` returns; Python lacks that function."""
    return ~pid << 3 | _CPUCLOCK_SCHED
