"""Network namespaces, named by a process or thread that lives in them.

A lab's namespaces have no names in the file system: they exist as long as
somebody is in them, and no longer.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def entered(pid: int) -> Iterator[None]:
    """Runs the body in the network namespace of the process or thread `pid`.

    Only the calling thread is moved. Sockets opened there stay there.
    """
    with _namespace("thread-self").open() as home, _namespace(str(pid)).open() as there:
        _check(_libc.setns(there.fileno(), _CLONE_NEWNET))
        try:
            yield
        finally:
            _check(_libc.setns(home.fileno(), _CLONE_NEWNET))


def enter(namespace: int) -> None:
    """Moves the calling thread to the namespace behind an open file, of whatever kind."""
    _check(_libc.setns(namespace, 0))


def unshare() -> None:
    """Moves the calling process, which must have one thread, to a new network namespace."""
    _check(_libc.unshare(_CLONE_NEWNET))


def unshare_host() -> None:
    """Moves the calling thread to a new network namespace, with a /sys that shows it."""
    _check(_libc.unshare(_CLONE_NEWNET | _CLONE_NEWNS))
    _libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None)  # where it may not be: the lab's


def write_sysctl(key: str, value: str) -> None:
    """Sets `net.…` of the namespace the calling thread is in; no such key, nothing to set."""
    path = Path("/proc/sys", *key.split("."))
    if path.exists():
        path.write_text(value)


def _namespace(process: str) -> Path:
    return Path("/proc", process, "ns/net")


def _check(result: int) -> None:
    if result != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
