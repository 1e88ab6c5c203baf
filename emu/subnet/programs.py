"""Debian's InfiniBand programs, run so that the kernel ends them with whoever started them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from emu.errors import HostError

_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""Where Debian has them; an ordinary user's PATH may lack /usr/sbin."""
_LAST_LINES = 8


def program(name: str, *, package: str) -> Sequence[str]:
    """The beginning of a command that runs it. Raises HostError when it is not there."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}")
    if path is None:
        raise _not_installed(name, package)
    return ["setpriv", "--pdeathsig", "KILL", path]


def umad_to_ibsim() -> Path:
    """The library that leads a program's management packets to ibsim. Raises HostError."""
    for path in Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"):
        return path
    raise _not_installed("libumad2sim.so", "libumad2sim0")


def _not_installed(what: str, package: str) -> HostError:
    return HostError(
        f"{what} is not installed, which routes the InfiniBand fabric",
        remedy=f"run: sudo apt-get install {package}",
    )


def text_of(path: Path) -> str:
    """A log so far; empty when there is none yet."""
    return path.read_text(errors="replace") if path.exists() else ""


def last_words(*logs: Path) -> str:
    """The end of the first log that has something."""
    said = next(filter(None, map(text_of, logs)), "")
    return "\n".join(said.splitlines()[-_LAST_LINES:])
