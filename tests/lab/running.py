"""A lab that is in the middle of something, to be ended by a test."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from typing import IO

from tests.lab.traces import Inside, Outside
from tests.lab.user import SECONDS, Ended, User, wait

Command = tuple[str, str]
"""A program, and a word of its command."""


class RunningLab:
    """A lab, and everything of it that could outlive it."""

    def __init__(self, user: User, *command: str, says: str) -> None:
        """`command` starts it. It is up when it writes a line that begins with `says`."""
        self._user = user
        self._before = Outside.now(user)
        self.owner = user.start(*command)
        _wait_for(self.owner, says)
        self.inside = Inside(self.owner.pid)

    def kill(self, victim: Command) -> None:
        os.kill(self.inside.process(*victim), signal.SIGKILL)

    def end(self) -> Ended:
        """What the owner said when it had ended. Fails when anything of the lab is left."""
        ended = wait(self.owner)
        self.inside.wait_for_end()
        assert self.inside.left() == []
        assert Outside.now(self._user) == self._before
        return ended


def _wait_for(process: subprocess.Popen[bytes], says: str) -> None:
    """Reads both streams line by line, and not a byte more, until one has the line."""
    streams: list[IO[bytes]] = [s for s in (process.stdout, process.stderr) if s is not None]
    said = ""
    while True:
        ready, _, _ = select.select(streams, [], [], SECONDS)
        assert ready, "the lab says nothing"
        for stream in ready:
            line = stream.readline().decode()
            if line.startswith(says):
                return
            said += line
            assert line, f"the lab has ended with {process.wait()}, and said {said}"
