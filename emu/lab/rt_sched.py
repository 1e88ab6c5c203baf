"""Makes a process a punctual one: it shall wake when it asked to.

Root gives it real-time priority: it sleeps most of the time, and when it wakes
it goes first. Anybody may ask the scheduler for short time slices instead (Linux
6.12): who wants little at a time may interrupt who wants much. And root keeps the
processors from sleeping while traffic runs. Without these frames are later, and
the run's fidelity shows by how much.
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
    """For the calling thread: timers fire when they are due, not up to 50 us later."""
    LIBC.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    _prefer(0)


def be_punctual() -> None:
    """For the calling thread; those it starts later are ordinary ones.

    It wakes in time; no garbage collection on the way; and where that is allowed no
    page, code neither, leaves memory again.
    """
    wake_in_time()
    LIBC.mlockall(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT)
    gc.freeze()
    gc.disable()


@contextmanager
def processors_awake() -> Iterator[None]:
    """Meanwhile no processor sleeps that has nothing to do, where that may be asked for.

    A processor's deep sleep takes 100 us and more to end. A virtual one that sleeps gives
    its place to others, and gets it back when they have had their turn: milliseconds.
    Source: Linux, Documentation/power/pm_qos_interface.rst.
    """
    try:
        request = os.open(_LATENCY, os.O_WRONLY)
    except OSError:
        yield
        return
    try:
        os.write(request, struct.pack("=i", 0))  # us to wake up in
        yield
    finally:
        os.close(request)


def run_before_others(pid: int) -> None:
    """For all threads of a process: one that waits for a lock must not wait for everybody else."""
    for thread in Path("/proc", str(pid), "task").iterdir():
        _prefer(int(thread.name))


def _prefer(thread: int) -> None:
    try:
        os.sched_setscheduler(thread, _FIRST, os.sched_param(1))
    except PermissionError:
        _shorten_slice(thread)


def _shorten_slice(thread: int) -> None:
    """Older kernels take no notice."""
    call = _SYS_SCHED_SETATTR.get(platform.machine())
    if call is not None:
        attributes = _SCHED_ATTR.pack(
            _SCHED_ATTR.size, os.SCHED_OTHER, 0, 0, 0, _SLICE_NS, 0, 0, 0, 0
        )
        LIBC.syscall(call, thread, attributes, 0)
