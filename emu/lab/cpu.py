"""How much processor time the processes of a lab have used."""

from __future__ import annotations

import time
from collections.abc import Mapping

_CPUCLOCK_SCHED = 2  # linux/posix-timers.h


class CpuMeter:
    """Counts from the moment it is made."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        """`pids`: a name for each process to watch."""
        self._pids = dict(pids)
        self._before = self._now()

    def used(self) -> dict[str, float]:
        """Seconds of processor time since then, by name."""
        return {name: now - self._before[name] for name, now in self._now().items()}

    def _now(self) -> dict[str, float]:
        return {name: _seconds(pid) for name, pid in self._pids.items()}


def _seconds(pid: int) -> float:
    """Of all threads, those that have ended too, by the clock that counts it."""
    return time.clock_gettime(_clock_of(pid))


def _clock_of(pid: int) -> int:
    """As `clock_getcpuclockid(3)`, which Python does not have, makes it."""
    return ~pid << 3 | _CPUCLOCK_SCHED
