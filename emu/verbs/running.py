"""Whether any program on the hosts is at work, as the kernel sees it, before a long jump of time.

Programs in emulated time that all wait may still get an answer from a program in the machine's
time, as ranks of MPI from the daemon that has started them. If they wait for it with a time-out,
this time-out is jumped to within a moment of the machine's time. So before a long jump all may
finish what they are doing: they hold emulated time while a thread runs, though not for ever, since
a program may compute for hours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_RUNS = ("R", "D")
_LOOKS = 2
"""One that is looked at early may be woken by one that is looked at late and then sleeps."""
_MOST_SECONDS = 1.0
"""For which they hold emulated time at once."""


class RunningPrograms:
    """All processes that have begun since this was made, in this process' PID namespace."""

    def __init__(self) -> None:
        self._lab = set(_processes())
        self._since: float | None = None
        """When they began to hold emulated time; None: they do not."""

    def hold(self) -> bool:
        """Whether emulated time should not pass yet."""
        if not any(self._any_runs() for _ in range(_LOOKS)):
            self._since = None
            return False
        if self._since is None:
            self._since = time.monotonic()
        return time.monotonic() - self._since < _MOST_SECONDS

    def _any_runs(self) -> bool:
        return any(_runs(pid) for pid in _processes() if pid not in self._lab)


def _processes() -> Iterator[str]:
    return (entry.name for entry in _PROC.iterdir() if entry.name.isdigit())


def _runs(pid: str) -> bool:
    """Whether a thread of the process runs, or would if a processor were free."""
    with suppress(OSError):  # it has just ended
        for task in (_PROC / pid / "task").iterdir():
            with suppress(OSError):
                if (task / "stat").read_text().rpartition(") ")[2].startswith(_RUNS):
                    return True
    return False
