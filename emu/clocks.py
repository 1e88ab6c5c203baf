"""The clocks that a fabric can run on, and what differs between them.

Whatever depends on the clock asks for the property that it means, and compares no names. A new
clock is one object here and one `Runner` (emu/runtime).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ClockName = Literal["virtual", "exact", "real"]


@dataclass(frozen=True)
class Clock:
    name: ClockName
    how: str
    """How a run on it goes, for the help of commands."""
    is_exact: bool
    """Every frame leaves at its scheduled time, so that there is no lateness to measure."""
    elides_payload: bool
    """Packets may carry their headers alone."""
    needs: tuple[str, ...] = ()
    """What the machine must have, as `emu check` names it."""


VIRTUAL = Clock(
    "virtual",
    how="in this process, without waiting",
    is_exact=True,
    elides_payload=True,
)
REAL = Clock(
    "real",
    how="a lab of namespaces",
    is_exact=False,
    elides_payload=False,
    needs=("namespaces", "veth", "mininet", "emu._core"),
)
EXACT = Clock(
    "exact",
    how="a lab of namespaces, whose time waits for its frames",
    is_exact=True,
    elides_payload=False,
    needs=REAL.needs,
)
AUTO = "auto"
"""In place of a clock's name: the choice is left to `emu.runtime.auto_clock`."""
CLOCKS: dict[str, Clock] = {clock.name: clock for clock in (VIRTUAL, EXACT, REAL)}
