"""What the process of a lab's NICs holds for programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.background_lab import owner_of_lab
from tests.support.traces import descendants
from tests.support.user import User


class Holdings(NamedTuple):
    """Things that belong to programs."""

    memory_files: int
    mappings: int
    """Of these files."""
    pipes: int
    """Of events. The pipe that wakes the NICs has two ends, and stays."""


NOTHING = Holdings(memory_files=0, mappings=0, pipes=2)


def nics_of(user: User) -> int:
    """The process of the NICs that serve programs in the one lab of this user."""
    (pid,) = (one for one in descendants(owner_of_lab(user)) if _name(one) == "emu-verbs")
    return pid


def holdings(nics: int) -> Holdings:
    process = Path(f"/proc/{nics}")
    mappings = (process / "maps").read_text().splitlines()
    files = list(_open_files(process / "fd"))
    return Holdings(
        sum(map(_is_of_programs, files)),
        sum(map(_is_of_programs, mappings)),
        sum(file.startswith("pipe:") for file in files),
    )


def _is_of_programs(file: str) -> bool:
    return "/memfd:emu-" in file


def _open_files(folder: Path) -> Iterator[str]:
    for file in folder.iterdir():
        with suppress(OSError):  # it has just been closed
            yield str(file.readlink())


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
