"""The job of `switch_inside.py`, and its result."""

from __future__ import annotations

from emu.lab.ipc.codec import message
from emu.lab.ipc.jobs import Job


@message
class Forwarded:
    """What came of the frames."""

    arrived: tuple[str, ...]
    """At h2, as hex."""
    drops: int
    drops_over_time: int
    dropped: int
    too_long: int
    dropped_over_time: int
    seen_after_ns: tuple[int, ...]
    lasted_ns: int


@message
class Forward(Job[Forwarded]):
    """h1 sends frames to h2 before the switch looks."""

    spec: str
    out: str
    frames: tuple[str, ...]
    """As hex."""
    arrivals: int
    """Wait for so many."""
    ring_frames: int
    memory: int | None
    """Bytes that the process may take for its ring; None: as much as there is."""
