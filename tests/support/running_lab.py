"""A running lab that a test interrupts."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import IO

from tests.support.traces import Inside, Outside, command_of, descendants
from tests.support.user import SECONDS, Ended, User, wait

Command = tuple[str, str]
"""A program, and a word of its command."""


class RunningLab:
    """A lab, and everything of it that could outlive it."""

    def __init__(self, user: User, *command: str, says: str | None = None) -> None:
        """`command` starts the lab. It is up when it prints a line that begins with `says`, by
        default when a host has sent a frame."""
        self._user = user
        self._before = Outside.now(user)
        self.owner = user.start(*command)
        if says is None:
            _wait_for_frames(self.owner)
        else:
            _wait_for(self.owner, says)
        self.inside = Inside(self.owner.pid)

    def kill(self, victim: Command, by: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.inside.process(*victim), by)

    def end(self) -> Ended:
        """The owner's output and exit code at its end. Fails if anything of the lab remains."""
        ended = wait(self.owner)
        self.inside.wait_for_end()
        assert self.inside.left() == []
        assert Outside.now(self._user) == self._before
        return ended


def _wait_for(process: subprocess.Popen[bytes], says: str) -> None:
    """Reads both streams line by line, and no byte more, until one has the line."""
    streams: list[IO[bytes]] = [s for s in (process.stdout, process.stderr) if s is not None]
    printed = ""
    while True:
        ready, _, _ = select.select(streams, [], [], SECONDS)
        assert ready, "the lab prints nothing"
        for stream in ready:
            line = stream.readline().decode()
            if line.startswith(says):
                return
            printed += line
            assert line, f"the lab has ended with {process.wait()}, and printed {printed}"


def _wait_for_frames(process: subprocess.Popen[bytes]) -> None:
    """Waits until the shim has received a frame on any interface in its network namespace."""
    until = time.monotonic() + SECONDS
    while not any(map(_has_received, _shims_of(process.pid))):
        assert process.poll() is None, f"the lab has ended with {process.poll()}"
        assert time.monotonic() < until, "no host sends a frame"


def _shims_of(root: int) -> list[int]:
    """The shim processes. Empty if processes end during the search: building a lab starts many
    short ones."""
    try:
        return [pid for pid in descendants(root) if "emu-shim" in command_of(pid)]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _has_received(pid: int) -> bool:
    """Whether an interface of a host's cable in the network namespace of the process has received a
    frame."""
    rows = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    counts = dict(row.strip().split(":", 1) for row in rows)
    return any(int(own.split()[1]) for name, own in counts.items() if "-eth" in name)
