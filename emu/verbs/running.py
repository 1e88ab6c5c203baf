"""Whether any program on the hosts is at work, as the kernel sees it, before a long jump of time.

Programs in emulated time that all wait may still get an answer from a program in the machine's
time, as ranks of MPI from the daemon that has started them. If they wait for it with a time-out,
this time-out is jumped to within a moment of the machine's time. So before a long jump all may
finish what they are doing: they hold emulated time while a thread runs, though not for ever, since
a program may compute for hours. What they use of a processor counts, as on a busy machine they may
wait for one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_RUNS = ("R", "D")
_USER_TIME = 11
"""The place of utime behind the state, in /proc/[pid]/stat."""
_LOOKS = 2
"""One that is looked at early may be woken by one that is looked at late and then sleeps."""
_MOST_SECONDS = 1.0
"""Of processor time, for which they hold emulated time at once."""
_MOST_WALL_SECONDS = 10.0
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class RunningPrograms:
    """All processes that have begun since this was made, in this process' PID namespace."""

    def __init__(self) -> None:
        self._lab = set(_processes())
        self._until: tuple[float, float] | None = None
        """The processor time and the wall time up to which they hold emulated time; None: they do
        not."""

    def hold(self) -> bool:
        """Whether emulated time should not pass yet."""
        if not any(self._any_runs() for _ in range(_LOOKS)):
            self._until = None
            return False
        used, now = self._used_seconds(), time.monotonic()
        if self._until is None:
            self._until = used + _MOST_SECONDS, now + _MOST_WALL_SECONDS
        return used < self._until[0] and now < self._until[1]

    def _programs(self) -> Iterator[str]:
        return (pid for pid in _processes() if pid not in self._lab)

    def _any_runs(self) -> bool:
        return any(map(_runs, self._programs()))

    def _used_seconds(self) -> float:
        return sum(map(_used_ticks, self._programs())) / _TICKS_PER_SECOND


def _processes() -> Iterator[str]:
    return (entry.name for entry in _PROC.iterdir() if entry.name.isdigit())


def _runs(pid: str) -> bool:
    """Whether a thread of the process runs, or would if a processor were free."""
    with suppress(OSError):  # it has just ended
        for task in (_PROC / pid / "task").iterdir():
            with suppress(OSError):
                if _numbers(task)[0] in _RUNS:
                    return True
    return False


def _used_ticks(pid: str) -> int:
    with suppress(OSError):  # it has just ended
        in_user, in_kernel = _numbers(_PROC / pid)[_USER_TIME : _USER_TIME + 2]
        return int(in_user) + int(in_kernel)
    return 0


def _numbers(task: Path) -> list[str]:
    """Its state, and what follows in /proc/[pid]/stat (proc(5))."""
    return (task / "stat").read_text().rpartition(") ")[2].split()
