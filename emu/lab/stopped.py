"""Finds processes that were stopped (SIGSTOP) and do not go on. A lab on the exact clock would wait
for them as long as they stand."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS = 5.0
"""How long a process may be stopped."""
_STOPPED = "T"


class StopWatch:
    """Remembers since when processes are stopped."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._since: dict[int, float] = {}

    def find_stopped(self, pids: Iterable[int]) -> int | None:
        """One of these processes that has been stopped too long. Call it repeatedly."""
        now = time.monotonic()
        stopped = [pid for pid in pids if is_stopped(pid)]
        self._since = {pid: self._since.get(pid, now) for pid in stopped}
        return next((pid for pid in stopped if now - self._since[pid] >= self._seconds), None)


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped a process. False if it has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] == _STOPPED
