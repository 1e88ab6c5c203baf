"""Clear errors for exhausted resources: limits of this machine or of this shell.

Files, memory, processes and disk space can run out at any line. Such an error is no bug, and the
place where it occurred does not help the user.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
from pathlib import Path

from emu.errors import HostError

_FILES = {errno.EMFILE, errno.ENFILE}
_MEMORY = {errno.ENOMEM}
_PROCESSES = {errno.EAGAIN}
_DISK = {errno.ENOSPC, errno.EDQUOT}
_FILE_SIZE = {errno.EFBIG}
_OF_LOADERS = {
    "Too many open files": _FILES,
    "Cannot allocate memory": _MEMORY,
    "failed to map segment": _MEMORY,
}
"""The dynamic loader's message, for which Python has no error number."""

_NO_TEMPORARY_FOLDER = "No usable temporary directory found"
"""The message of Python's `tempfile`."""

_LEAST_BYTES = 256 << 20
"""Of address space. A run of two hosts was seen to need 200 MiB, all imports 132 MiB; the rest is
margin, as libraries in C and Rust end the process when they get no memory."""
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # malloc.h: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
_KEPT_BYTES = 1 << 30
_MORE_MEMORY = (
    "raise or lift the limit (`ulimit -v unlimited`), free some memory, or take a smaller fabric"
)


def allow_files(count: int) -> None:
    """Lets this process and its children open this number of files.

    Without enough of them other projects' programs wait for ever. Raises HostError.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise HostError(
            f"a process may open {hard:,} files here, and this lab needs {count:,}",
            remedy="allow more with `ulimit -n` (as root, or in /etc/security/limits.conf), or "
            "take a smaller fabric",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def need_memory() -> None:
    """Raises HostError if a limit leaves less memory than Python and numpy need to start.

    numpy's OpenBLAS would end the process without an exception.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and soft < _LEAST_BYTES:
        raise HostError(
            f"this process may take {soft >> 10:,} KiB of memory, and needs {_LEAST_BYTES >> 10:,}",
            remedy=_MORE_MEMORY,
        )


def machine_memory_bytes() -> int:
    """The memory that a process may have here: the machine's, or a limit's if that is less."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return total if soft == resource.RLIM_INFINITY else min(total, soft)


def free_memory_bytes() -> int:
    """The memory that the kernel can provide without swapping (proc(5), MemAvailable)."""
    lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    fields = dict(line.split(":") for line in lines)
    free = int(fields["MemAvailable"].removesuffix("kB")) * 1024
    return min(free, machine_memory_bytes())


def keep_freed_memory() -> None:
    """Keeps large freed blocks of memory in this process, for later allocations.

    Otherwise glibc maps each block anew, and the kernel clears it page by page: on a fabric of
    1,024 hosts that took 0.25 s beside 2.3 s of emulation. Other C libraries are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            mallopt(parameter, _KEPT_BYTES)


def exhausted_resource(error: BaseException) -> HostError | None:
    """The exhausted resource that an error, or its cause, reports; None if it reports none."""
    seen: BaseException | None = error
    while seen is not None:
        found = _exhausted_by(seen)
        if found is not None:
            return found
        seen = seen.__cause__ or seen.__context__
    return None


def _exhausted_by(error: BaseException) -> HostError | None:
    numbers = _numbers(error)
    if numbers & _FILES:
        return HostError(
            f"too many open files: this process may have {_limit(resource.RLIMIT_NOFILE)}",
            remedy="allow more with `ulimit -n 4096`, or take a smaller fabric",
        )
    if numbers & _MEMORY:
        return HostError(
            "memory has run out: this process may take "
            f"{_limit(resource.RLIMIT_AS, unit=1 << 10, name=' KiB')}",
            remedy=_MORE_MEMORY,
        )
    if numbers & _PROCESSES:
        return HostError(
            "no more processes or threads can be started: this user may have "
            f"{_limit(resource.RLIMIT_NPROC)}",
            remedy="end some, or allow more with `ulimit -u`",
        )
    if numbers & _DISK:
        name = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        return HostError(f"{name}there is no space left on the disk", remedy="make room there")
    if numbers & _FILE_SIZE and _is_limited(resource.RLIMIT_FSIZE):
        return HostError(
            "a file would become too large: this process may write files of "
            f"{_limit(resource.RLIMIT_FSIZE, unit=1 << 10, name=' KiB')}",
            remedy="allow more with `ulimit -f unlimited`",
        )
    if _NO_TEMPORARY_FOLDER in str(error):
        return HostError(
            "there is no folder for temporary files in which this process can write",
            remedy="name one in TMPDIR, make room there, or allow larger files "
            "(`ulimit -f unlimited`)",
        )
    return None


def _numbers(error: BaseException) -> set[int]:
    """The error numbers that the error has, or that its message means."""
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, BlockingIOError):
        return _PROCESSES if _is_of_fork(error) else set()
    if isinstance(error, OSError) and error.errno is not None:
        return {error.errno} - _PROCESSES
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return _MEMORY if _is_limited(resource.RLIMIT_AS) else _PROCESSES  # its stack, or itself
    if isinstance(error, ImportError | OSError):
        return next((kind for words, kind in _OF_LOADERS.items() if words in str(error)), set())
    return set()


def _is_limited(kind: int) -> bool:
    return resource.getrlimit(kind)[0] != resource.RLIM_INFINITY


def _is_of_fork(error: BlockingIOError) -> bool:
    """Whether EAGAIN means that a process cannot be started, and not that a socket is not ready."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_name in ("_execute_child", "_fork_exec")


def _limit(kind: int, unit: int = 1, name: str = "") -> str:
    soft, _ = resource.getrlimit(kind)
    return "as much as there is" if soft == resource.RLIM_INFINITY else f"{soft // unit:,}{name}"
