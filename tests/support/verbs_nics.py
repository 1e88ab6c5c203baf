"""What the process of a lab's NICs holds for programs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.support.background_lab import owner_of_lab
from tests.support.traces import descendants
from tests.support.user import User


class Holdings(NamedTuple):
    """Things that belong to programs."""

    files: int
    mappings: int
    """Of programs' memory."""


def nics_of(user: User) -> int:
    """The process of the NICs that serve programs in the one lab of this user."""
    (pid,) = (one for one in descendants(owner_of_lab(user)) if _name(one) == "emu-verbs")
    return pid


def holdings(nics: int) -> Holdings:
    process = Path(f"/proc/{nics}")
    mappings = (process / "maps").read_text().splitlines()
    ours = [line for line in mappings if "/memfd:emu-" in line]
    return Holdings(len(list((process / "fd").iterdir())), len(ours))


def resident_kb(nics: int) -> int:
    """The memory that the process has."""
    for line in Path(f"/proc/{nics}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"{nics} has ended")


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has just ended
        return ""
