"""Makes a process a punctual one: it shall wake when it asked to."""

from __future__ import annotations

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path

_PR_SET_TIMERSLACK = 29  # linux/prctl.h
_FIRST = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
_libc = ctypes.CDLL(None, use_errno=True)


def be_punctual() -> None:
    """For the calling thread; those it starts later are ordinary ones.

    Timers fire when they are due, not up to 50 us later; no garbage collection on the way."""
    _libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    gc.freeze()
    gc.disable()
    with suppress(PermissionError):
        os.sched_setscheduler(0, _FIRST, os.sched_param(1))


def run_before_others(pid: int) -> None:
    """Real-time priority for a process that sleeps most of the time, where we may give it.

    For all its threads: one that waits for a lock must not wait for everybody else.
    """
    with suppress(PermissionError):
        for thread in Path("/proc", str(pid), "task").iterdir():
            os.sched_setscheduler(int(thread.name), _FIRST, os.sched_param(1))
