"""The job of `switch_inside.py`, and its result."""

from __future__ import annotations

from emu.lab.ipc.codec import message
from emu.lab.ipc.jobs import Job


@message
class Forwarded:
    """The frames that arrived, and the counters of the others."""

    arrived: tuple[str, ...]
    """Frames that reached h2, as hex."""
    drops: int
    drops_over_time: int
    dropped: int
    too_long: int
    dropped_over_time: int
    seen_after_ns: tuple[int, ...]
    lasted_ns: int


@message
class Forward(Job[Forwarded]):
    """h1 sends frames to h2 before the switch first reads its sockets."""

    spec: str
    out: str
    frames: tuple[str, ...]
    """Frames as hex."""
    arrivals: int
    """The number of frames to wait for."""
    ring_frames: int
    memory: int | None
    """Bytes that the process can allocate for its ring; None: no limit."""
    stamps_late: bool
    """Whether the kernel begins to stamp frames only after the second, as far as the process'
    priority can make it wait: it does so when the process first sleeps."""
