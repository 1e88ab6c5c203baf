"""Runs Debian's InfiniBand programs so that the kernel ends them with their starter."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from emu.errors import HostError

DIAGNOSTICS = (
    *("ibnetdiscover", "iblinkinfo", "ibroute", "ibtracert", "ibhosts", "ibswitches", "ibstat"),
    *("smpquery", "perfquery", "ibqueryerrors", "sminfo", "saquery", "dump_lfts"),
)
"""Tools of infiniband-diags that a lab runs for its user."""
READ_SYSFS = ("ibstat",)
"""Those that read the host's sysfs and send no management packets."""
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""Where Debian has them; an ordinary user's PATH may lack /usr/sbin."""
_LAST_LINES = 8


def program(name: str, *, package: str) -> Sequence[str]:
    """The beginning of a command that runs it. Raises HostError if it is not installed."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}")
    if path is None:
        raise _not_installed(name, package)
    return ["setpriv", "--pdeathsig", "KILL", path]


PRELOAD = Path(__file__).with_name("preload.so")
"""What ibsim's clients load first: time-outs of MADs (mad_layer.c), a seed (random_seed.c)."""


def preload_in(folder: Path) -> str:
    """Its path for a program that starts in `folder`, which is created if need be.

    LD_PRELOAD ends a path at a space or colon, of which this one has none. Raises HostError when
    it has not been built.
    """
    if not PRELOAD.exists():
        raise HostError(f"{PRELOAD} has not been built", remedy="python -m emu._build")
    link = folder / PRELOAD.name
    if not link.exists():
        folder.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(PRELOAD)
    return f"./{link.name}"


def umad_to_ibsim() -> Path:
    """The library that redirects a program's management packets to ibsim. Raises HostError."""
    for path in Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"):
        return path
    raise _not_installed("libumad2sim.so", "libumad2sim0")


def _not_installed(what: str, package: str) -> HostError:
    return HostError(
        f"{what} is not installed, and InfiniBand fabrics need it",
        remedy=f"run: sudo apt-get install {package}",
    )


def text_of(path: Path) -> str:
    """The text of a log so far; empty if it does not exist yet."""
    return path.read_text(errors="replace") if path.exists() else ""


def last_lines(*logs: Path) -> str:
    """The end of the first log that is not empty."""
    text = next(filter(None, map(text_of, logs)), "")
    return "\n".join(text.splitlines()[-_LAST_LINES:])
