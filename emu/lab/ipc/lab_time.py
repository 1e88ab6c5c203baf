"""The emulated time of an interactive lab: what clients request of the lab, and the lab of its
shim."""

from __future__ import annotations

from emu.lab.ipc.codec import Query, message

RUNS, STANDS, PAUSED, FAILED = STATES = ("runs", "stands", "paused", "failed")
"""`stands`: nothing is on the way, or a program decides what the NICs do next. `paused`: a user has
stopped time."""


@message
class LabTime:
    """A lab's emulated time. On the real clock it always runs."""

    state: str
    """One of STATES."""
    now_ps: int
    why_failed: str = ""
    """Why it never runs again, if `failed`."""


@message
class PauseTime(Query[LabTime]):
    """Let time stand as soon as possible, in all processes at one instant."""


@message
class ContinueTime(Query[LabTime]):
    """Let a paused time go on."""


@message
class StepTime(Query[LabTime]):
    """Let so much time pass, and pause then. Time must stand, or be paused."""

    step_ps: int


@message
class JoinNics(Query[LabTime]):
    """To the shim: NICs begin at the present time, which the answer has. The query's open files are
    the memory that they share with the shim and, if a program posts their work, the eventfds
    `nudge` and `resume`."""

    endless: bool = False
    """The spec's time limit does not end them: a program does."""


@message
class LeaveNics(Query[LabTime]):
    """To the shim: the NICs have ended."""
