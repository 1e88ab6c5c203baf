"""Scheduling that wakes a process on time.

Root gives the process real-time priority: it sleeps most of the time, and runs at once when it
wakes. Other users request short time slices instead (Linux 6.12): a process with a shorter slice
may preempt others. Root also keeps the processors from sleeping while traffic runs. Without these
settings frames are later, and the run's fidelity shows by how much.
"""

from __future__ import annotations

import gc
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emu.lab.libc import LIBC

_PR_SET_TIMERSLACK = 29  # linux/prctl.h
_MCL_CURRENT, _MCL_FUTURE, _MCL_ONFAULT = 1, 2, 4  # asm-generic/mman.h
_FIRST = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
_SLICE_NS = 100_000
_LATENCY = "/dev/cpu_dma_latency"
_SYS_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_SCHED_ATTR = struct.Struct("=IIQiIQQQII")  # linux/sched/types.h: struct sched_attr


def wake_in_time() -> None:
    """Makes timers of the calling thread fire when they are due, not up to 50 us later."""
    LIBC.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    _prefer(0)


def be_punctual() -> None:
    """Makes the calling thread punctual. Threads that it starts later are ordinary ones.

    It wakes on time and collects no garbage. If permitted, all pages of the process, code
    included, stay in memory.
    """
    wake_in_time()
    LIBC.mlockall(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT)
    gc.freeze()
    gc.disable()


@contextmanager
def processors_awake() -> Iterator[None]:
    """Keeps idle processors out of deep sleep in its body, if permitted.

    A processor takes 100 us and more to wake from deep sleep. A virtual processor that sleeps
    yields to others and may wait milliseconds for its next turn.
    Source: Linux, Documentation/power/pm_qos_interface.rst.
    """
    try:
        request = os.open(_LATENCY, os.O_WRONLY)
    except OSError:
        yield
        return
    try:
        os.write(request, struct.pack("=i", 0))  # latency in us
        yield
    finally:
        os.close(request)


def run_before_others(pid: int) -> None:
    """Prefers all threads of a process: none must wait for a lock that a preempted one holds."""
    for thread in Path("/proc", str(pid), "task").iterdir():
        _prefer(int(thread.name))


def _prefer(thread: int) -> None:
    try:
        os.sched_setscheduler(thread, _FIRST, os.sched_param(1))
    except PermissionError:
        _shorten_slice(thread)


def _shorten_slice(thread: int) -> None:
    """Requests a short time slice for a thread. Kernels before 6.12 ignore it."""
    call = _SYS_SCHED_SETATTR.get(platform.machine())
    if call is not None:
        attributes = _SCHED_ATTR.pack(
            _SCHED_ATTR.size, os.SCHED_OTHER, 0, 0, 0, _SLICE_NS, 0, 0, 0, 0
        )
        LIBC.syscall(call, thread, attributes, 0)
