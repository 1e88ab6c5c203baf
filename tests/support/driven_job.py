"""The job of `driven_inside.py`, and its result."""

from __future__ import annotations

from emu.lab.ipc.codec import message
from emu.lab.ipc.jobs import Job


@message
class DrivenResult:
    captures: dict[str, str]
    """File by port."""
    output: tuple[str, ...]
    """The output of each command."""


@message
class Drive(Job[DrivenResult]):
    """A run that sends frames and then runs commands on hosts once its traffic flows."""

    spec: str
    out: str
    slowdown: float
    frames: tuple[tuple[str, str], ...]
    """Each frame as its host and its bytes in hex."""
    commands: tuple[tuple[str, ...], ...]
    """Each command as its host and its words."""
