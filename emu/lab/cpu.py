"""Who has used the machine's processors while a lab was busy."""

from __future__ import annotations

import time
from collections.abc import Mapping
from os import sysconf
from pathlib import Path

_CPUCLOCK_SCHED = 2  # linux/posix-timers.h
_BUSY, _STOLEN = "busy", "stolen"


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
