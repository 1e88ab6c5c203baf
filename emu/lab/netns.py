"""Network namespaces, identified by a process or thread in them.

A lab's namespaces have no names in the file system: each exists as long as a process or thread is
in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from emu.lab.libc import LIBC, checked

_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000


@contextmanager
def entered(pid: int) -> Iterator[None]:
    """Runs the body in the network namespace of the process or thread `pid`.

    Moves only the calling thread. Sockets opened in the body stay in that namespace.
    """
    with _namespace(str(pid)).open() as file, inside(file.fileno()):
        yield


@contextmanager
def inside(namespace: int) -> Iterator[None]:
    """Runs the body in the network namespace behind an open file."""
    with _namespace("thread-self").open() as own:
        checked(LIBC.setns(namespace, _CLONE_NEWNET))
        try:
            yield
        finally:
            checked(LIBC.setns(own.fileno(), _CLONE_NEWNET))


@contextmanager
def opened(pids: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Open files of the network namespaces that these processes and threads are in now."""
    with ExitStack() as files:
        yield {
            name: files.enter_context(_namespace(str(pid)).open()).fileno()
            for name, pid in pids.items()
        }


def enter(namespace: int) -> None:
    """Moves the calling thread to the namespace behind an open file, of any kind."""
    checked(LIBC.setns(namespace, 0))


def unshare() -> None:
    """Moves the calling process, which must have one thread, to a new network namespace."""
    checked(LIBC.unshare(_CLONE_NEWNET))


def unshare_host() -> None:
    """Moves the calling thread to a new network namespace, with a /sys that shows it."""
    checked(LIBC.unshare(_CLONE_NEWNET | _CLONE_NEWNS))
    LIBC.mount(b"sysfs", b"/sys", b"sysfs", 0, None)  # if not permitted, /sys stays the lab's


def write_sysctl(key: str, value: str) -> None:
    """Sets a sysctl in the calling thread's network namespace, if the kernel has it."""
    path = Path("/proc/sys", *key.split("."))
    if path.exists():
        path.write_text(value)


def _namespace(process: str) -> Path:
    return Path("/proc", process, "ns/net")
