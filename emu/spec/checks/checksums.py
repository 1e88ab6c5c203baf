"""The check of all checksums in captures."""

from __future__ import annotations

from pydantic import Field

from emu.spec.checks.kind import CheckKind
from emu.spec.notes import note
from emu.spec.quantities import Integer, PortNames


class Checksums(CheckKind):
    """The ICRC, VCRC and LPCRC of captured packets must equal a new computation."""

    at: PortNames = Field(
        default=("all",),
        description="Ports with a capture; all captured ports unless given.",
        json_schema_extra=note(why="every capture that the run makes"),
    )
    at_least: Integer = Field(
        default=1,
        ge=1,
        description="The least number of checksums that the captures must have.",
        json_schema_extra=note(unit="checksums", why="a capture without any packet proves nothing"),
    )

    def in_words(self, clock: str) -> str:
        where = "" if self.at == ("all",) else f" at {', '.join(self.at)}"
        return f"at least {self.at_least:,} checksums captured{where}, and none wrong"
