"""The check that no packet of a priority was dropped."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emu.spec.checks.kind import CheckKind
from emu.spec.notes import note
from emu.spec.quantities import Priority


class Lossless(CheckKind):
    """No packet of a priority was dropped by any switch, cable or NIC."""

    priority: Priority = Field(
        description="The priority, 0 to 7.", json_schema_extra=note(unit="priority")
    )

    excused: Literal["watchdog"] | None = Field(
        default=None,
        alias="except",
        description="`watchdog`: packets that the PFC watchdog drops are allowed.",
        json_schema_extra=note(why="a dropped packet is lost, even if the watchdog drops it"),
    )

    def in_words(self, clock: str) -> str:
        beside = " except for packets that the PFC watchdog drops" if self.excused else ""
        return f"priority {self.priority} is lossless{beside}"
