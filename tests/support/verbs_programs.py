"""Unmodified verbs programs on the hosts of a background lab: a server, and a client that connects
to it when it listens. The table of programs and their options is in test_programs.py."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import IO

from tests.support.background_lab import at_home, lab_up
from tests.support.traces import descendants
from tests.support.user import SECONDS, Ended, User, make_user, may_be_anybody, wait

_LISTENS = "0A"
"""The state of a listening socket in /proc/net/tcp."""


@dataclass(frozen=True)
class ProgramsLab:
    """A lab in which programs run one after another."""

    user: User

    def start(self, host: str, *command: str) -> subprocess.Popen[bytes]:
        return self.user.emu("exec", host, "--", *command)

    def run(self, host: str, *command: str) -> Ended:
        return wait(self.start(host, *command))

    def prints(self, host: str, *command: str) -> str:
        """What a program prints. Fails if it fails."""
        return _printed(command, self.run(host, *command))

    def mpirun(self, *words: str) -> str:
        """What an MPI program prints. Fails if it fails."""
        return _printed(("mpirun", *words), self.user.run_emu("mpirun", *words))

    def pair(
        self, server: Sequence[str], client: Sequence[str], hosts: tuple[str, str] = ("h1", "h3")
    ) -> tuple[str, str]:
        """What a server and its client print. Fails if one of them fails."""
        with self.running(hosts[0], *server) as first:
            _wait_until_listening(first)
            answered = self.run(hosts[1], *client)
            served = wait(first)
        return _printed(server, served), _printed(client, answered)

    @contextmanager
    def endless_pair(
        self, server: Sequence[str], client: Sequence[str], hosts: tuple[str, str]
    ) -> Iterator[IO[bytes]]:
        """What a client prints while it runs. Both are killed at the end."""
        with self.running(hosts[0], *server) as first:
            _wait_until_listening(first)
            with self.running(hosts[1], *client) as second:
                assert second.stdout is not None
                yield second.stdout

    @contextmanager
    def running(self, host: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
        """A program that is killed at the end if it has not ended."""
        program = self.start(host, *command)
        try:
            yield program
        finally:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)  # its child is the program
                program.communicate()


@contextmanager
def programs_lab(folder: Path, spec: str, *words: str) -> Iterator[ProgramsLab]:
    """A lab of this spec, brought up with these words, in a new folder inside `folder`."""
    own = Path(mkdtemp(dir=folder))
    own.chmod(0o755)
    user = at_home(make_user(own, ordinary=not may_be_anybody()))
    cache = {"XDG_CACHE_HOME": str(own / "cache")}  # what real labs measure stays there
    user = replace(user, environment=user.environment | cache)
    with lab_up(user, spec, *words):
        yield ProgramsLab(user)


def _printed(command: Sequence[str], ended: Ended) -> str:
    assert ended.code == 0, f"{' '.join(command)}: {ended.code}\n{ended.out}\n{ended.err}"
    return ended.out


def _wait_until_listening(process: subprocess.Popen[bytes]) -> None:
    """Waits until a process on the host of `process` listens for TCP. Fails if `process` ends
    before."""
    end = time.monotonic() + SECONDS
    while not _listens(process.pid):
        assert process.poll() is None, wait(process)
        assert time.monotonic() < end, "the server does not listen"
        time.sleep(0.01)


def _listens(root: int) -> bool:
    """Looks at the host's sockets, which the process that has entered the host sees."""
    outside = Path("/proc/self/ns/net").readlink()
    for pid in descendants(root):
        try:
            if Path(f"/proc/{pid}/ns/net").readlink() == outside:
                continue
            rows = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
        except OSError:  # it has just ended
            continue
        if any(row.split()[3] == _LISTENS for row in rows):
            return True
    return False
