"""A person at a shell: somebody who runs `emu` in a test, in an empty home folder.

Where the tests are root, every file made by what this person starts has a group
of its own, `group`: so a file that was left behind can be told from everybody
else's, wherever it lies.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
EMU = (sys.executable, "-m", "emu.cli.main")
NOBODY = 65534
SECONDS = 60.0
"""More than anything takes, on a machine that has much else to do."""

_SETPRIV = shutil.which("setpriv") or "setpriv"
_GROUP = 50_000 + os.getpid() % 10_000


class Ended(NamedTuple):
    """What a process left: its exit code, and what it wrote."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class User:
    """Somebody with a home, and the words before each of their commands."""

    prefix: tuple[str, ...]
    group: int
    home: Path
    environment: dict[str, str]

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
        """Starts `emu` with these words."""
        return self.start(*EMU, *map(str, words))

    def start_on(self, terminal: int, *words: str) -> subprocess.Popen[bytes]:
        """Starts `emu` with these words on a terminal of its own."""
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
        """The same person with another PATH."""
        return replace(self, environment=self.environment | {"PATH": path})


def wait(process: subprocess.Popen[bytes]) -> Ended:
    """Waits for the end of a process."""
    out, err = process.communicate(timeout=SECONDS)
    return Ended(process.returncode, out.decode(), err.decode())


def may_be_anybody() -> bool:
    """Whether the tests may run commands as somebody else."""
    return os.geteuid() == 0


def python_is_for_all() -> bool:
    """Whether any user may run this Python. One in root's home folder is root's alone."""
    python = Path(sys.executable).resolve()
    return all(path.stat().st_mode & 0o001 for path in (python, *python.parents))


def make_user(folder: Path, *, ordinary: bool) -> User:
    """Root or an ordinary user, with a home in `folder`, which an ordinary one may enter."""
    home = folder / "home"
    home.mkdir()
    environment = {"PYTHONPATH": str(ROOT), "HOME": str(home)}
    if not may_be_anybody():
        return User((), os.getegid(), home, environment)
    prefix: tuple[str, ...] = (_SETPRIV, f"--regid={_GROUP}", "--clear-groups")
    if ordinary:
        shutil.chown(home, NOBODY, _GROUP)
        prefix = (*prefix, f"--reuid={NOBODY}")
    return User(prefix, _GROUP, home, environment)
