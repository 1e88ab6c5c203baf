"""What in a spec a clock cannot run, and which clock can."""

from __future__ import annotations

from dataclasses import dataclass

from emu.clocks import VIRTUAL, Clock
from emu.spec.scenario import Spec


@dataclass(frozen=True)
class Obstacle:
    """What in a spec a clock cannot run."""

    why: str
    clock: Clock
    """One that can."""
    otherwise: str
    """The change to the spec with which it can."""

    def __str__(self) -> str:
        return f"{self.why}; use --clock {self.clock.name}, or {self.otherwise}"


def elided_payload(spec: Spec) -> Obstacle | None:
    """What every lab refuses: packets without their bytes."""
    if spec.payload != "elided":
        return None
    return Obstacle(
        "payload: elided leaves the bytes of messages out, and packets on interfaces have theirs",
        VIRTUAL,
        "--set payload=real",
    )
