"""A user at a shell who runs `emu` in a test, in an empty home folder.

If the tests run as root, every file that this user's processes create has a group of its own,
`group`, which distinguishes leftover files from those of other users, wherever they are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from tests.support.command_server import ForkedCommand, Identity

ROOT = Path(__file__).parents[2]
EMU = (sys.executable, "-m", "emu.cli.main")
NOBODY = 65534
SECONDS = 60.0
"""More than any step takes on a busy machine."""

_COUNTS_LINES = "COVERAGE_PROCESS_CONFIG" in os.environ
"""By a hook in each new Python."""
_SETPRIV = shutil.which("setpriv") or "setpriv"
_GROUP = 50_000 + os.getpid() % 10_000


class Ended(NamedTuple):
    """The exit code and the output of a process."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class User:
    """A user with a home, and the command prefix that switches to the user."""

    identity: Identity
    prefix: tuple[str, ...]
    """A prefix of a test's own makes a difference to all commands."""
    group: int
    home: Path
    environment: dict[str, str]

    @property
    def _may_fork(self) -> bool:
        return self.prefix == _switches_to(self.identity) and not _COUNTS_LINES

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Starts a command in the home folder, without a terminal. Its output is not buffered."""
        return subprocess.Popen(
            [*self.prefix, *command],
            cwd=self.home,
            env=os.environ | self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )

    def emu(self, *words: str | Path) -> subprocess.Popen[bytes]:
        """Starts `emu` with these arguments, as a fork if possible."""
        command = [*map(str, words)]
        if self._may_fork:
            environment = os.environ | self.environment
            return ForkedCommand(command, self.identity, self.home, environment)
        return self.start(*EMU, *command)

    def start_on(self, terminal: int, *words: str) -> subprocess.Popen[bytes]:
        """Starts `emu` with these arguments on a terminal of its own."""
        return subprocess.Popen(
            [*self.prefix, "setsid", "--ctty", *EMU, *words],
            cwd=self.home,
            env=os.environ | self.environment,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        )

    def run_emu(self, *words: str | Path) -> Ended:
        """Runs `emu` to its end."""
        return wait(self.emu(*words))

    def with_path(self, path: str) -> User:
        """The same user with another PATH."""
        return replace(self, environment=self.environment | {"PATH": path})


def wait(process: subprocess.Popen[bytes]) -> Ended:
    """Waits for the end of a process."""
    out, err = process.communicate(timeout=SECONDS)
    return Ended(process.returncode, out.decode(), err.decode())


def may_be_anybody() -> bool:
    """Whether the tests can run commands as other users."""
    return os.geteuid() == 0


def python_is_for_all() -> bool:
    """Whether every user can run this Python. Only root can run one in root's home folder."""
    python = Path(sys.executable).resolve()
    return all(path.stat().st_mode & 0o001 for path in (python, *python.parents))


def make_user(folder: Path, *, ordinary: bool) -> User:
    """Root or an ordinary user, with a home in `folder`; an ordinary user must be able to enter
    it."""
    home = folder / "home"
    home.mkdir()
    environment = {"PYTHONPATH": str(ROOT), "HOME": str(home)}
    if not may_be_anybody():
        return User(Identity(), (), os.getegid(), home, environment)
    if ordinary:
        shutil.chown(home, NOBODY, _GROUP)
    identity = Identity(_GROUP, NOBODY if ordinary else None)
    return User(identity, _switches_to(identity), _GROUP, home, environment)


def _switches_to(identity: Identity) -> tuple[str, ...]:
    """What a command has before it to run as somebody."""
    if identity.group is None:
        return ()
    words = (_SETPRIV, f"--regid={identity.group}", "--clear-groups")
    return words if identity.user is None else (*words, f"--reuid={identity.user}")
