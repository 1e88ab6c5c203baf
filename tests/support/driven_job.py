"""The job of `driven_inside.py`, and its result."""

from __future__ import annotations

from emu.lab.ipc.codec import message
from emu.lab.ipc.jobs import Job


@message
class DrivenResult:
    captures: dict[str, str]
    """Port -> file."""
    output: tuple[str, ...]
    """Of the commands."""


@message
class Drive(Job[DrivenResult]):
    """A run. Once its traffic flows, frames are sent and commands run on hosts, in this order."""

    spec: str
    out: str
    slowdown: float
    frames: tuple[tuple[str, str], ...]
    """Host, and bytes as hex."""
    commands: tuple[tuple[str, ...], ...]
    """Host, and words."""
