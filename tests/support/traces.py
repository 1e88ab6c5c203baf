"""Everything that a lab could leave behind.

before = Outside.now(user)
process = user.emu("run", spec)
lab = Inside(process.pid)
...
lab.wait_for_end()
assert lab.left() == []
assert Outside.now(user) == before
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support.user import SECONDS, User

_PROC = Path("/proc")
_NAMESPACES = ("net", "pid", "mnt", "user")
TESTS_FOLDER = "emu-lab-tests-"
"""The names of the folders of tests that run at the same time begin with this."""
_ANYBODYS_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock")


@dataclass(frozen=True)
class Outside:
    """The state of the machine outside of any lab."""

    interfaces: frozenset[str]
    mounts: frozenset[str]
    files: frozenset[Path]
    """Files of the user: in the home folder, and where every user may write."""

    @classmethod
    def now(cls, user: User) -> Self:
        return cls(
            interfaces=frozenset(entry.name for entry in Path("/sys/class/net").iterdir()),
            mounts=frozenset((_PROC / "self/mounts").read_text().splitlines()),
            files=frozenset(user.home.rglob("*")) | frozenset(_files_of(user.group)),
        )


class Inside:
    """The processes and namespaces of a running lab."""

    def __init__(self, root: int) -> None:
        """`root` is the user's process, from which all others descend."""
        self.commands: dict[int, tuple[str, ...]] = {}
        self._ends: dict[int, int] = {}
        for pid in (root, *descendants(root)):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                command, end = command_of(pid), os.pidfd_open(pid)
                self.commands[pid], self._ends[pid] = command, end
        self._namespaces = _opened(_PROC / str(pid) for pid in self.commands)

    def process(self, program: str, word: str) -> int:
        """The one process of this program whose command has this word."""
        (pid,) = (
            pid
            for pid, command in self.commands.items()
            if command[0] == program and word in command
        )
        return pid

    def wait_for_end(self) -> None:
        """Waits until every process has ended. Fails if one does not."""
        for pid, end in self._ends.items():
            assert select.select([end], [], [], SECONDS)[0], f"left: {self.commands[pid]}"
            os.close(end)

    def left(self) -> list[str]:
        """Other processes that are still in one of the namespaces, or hold one open. Call once."""
        left = [
            f"process {process.name}"
            for process in _PROC.iterdir()
            if process.name.isdigit()
            and int(process.name) != os.getpid()
            and self._namespaces.keys() & _held(process)
        ]
        for namespace in self._namespaces.values():
            os.close(namespace)
        return left


def command_of(pid: int) -> tuple[str, ...]:
    """The words of its command line, and its name, by which forked processes differ."""
    process = _PROC / str(pid)
    words = (process / "cmdline").read_text().rstrip("\0").split("\0")
    return *words, (process / "comm").read_text().rstrip()


def descendants(pid: int) -> Iterator[int]:
    children: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
        for task in (_PROC / str(pid) / "task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # or one of its threads
                children += map(int, (task / "children").read_text().split())
    for child in children:
        yield child
        yield from descendants(child)


def _opened(processes: Iterable[Path]) -> dict[str, int]:
    """Open descriptors of these processes' namespaces, except our own: they prevent the kernel from
    giving the number of an ended namespace to a new one."""
    own = _namespaces(_PROC / "self")
    opened: dict[str, int] = {}
    for process in processes:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for link in _namespace_links(process):
                name = _target(link)
                if name and name not in own and name not in opened:
                    opened[name] = os.open(link, os.O_RDONLY)
    return opened


def _namespace_links(process: Path) -> Iterator[Path]:
    """The namespace links of a process and its threads."""
    for task in (process / "task").iterdir():
        yield from (task / "ns" / kind for kind in _NAMESPACES)


def _namespaces(process: Path) -> frozenset[str]:
    """The namespaces that a process and its threads are in: `net:[4026531840]`."""
    return frozenset(filter(None, map(_target, _namespace_links(process))))


def _held(process: Path) -> frozenset[str]:
    """The namespaces that a process is in or holds open; empty if it has ended or is not
    accessible."""
    try:
        if (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return frozenset()
        return _namespaces(process) | frozenset(map(_target, (process / "fd").iterdir()))
    except OSError:
        return frozenset()


def _target(link: Path) -> str:
    with suppress(OSError):
        return str(link.readlink())
    return ""


def _files_of(group: int) -> Iterator[Path]:
    """A group's files in the folders where every user may write, without the folders of tests."""
    for folder in filter(Path.is_dir, map(Path, _ANYBODYS_FOLDERS)):
        for path in folder.iterdir():
            with suppress(OSError):
                if path.lstat().st_gid == group and not path.name.startswith(TESTS_FOLDER):
                    yield path
