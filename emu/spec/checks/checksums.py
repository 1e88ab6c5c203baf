"""Every checksum in what was captured."""

from __future__ import annotations

from pydantic import Field

from emu.spec.checks.kind import Kind
from emu.spec.notes import note
from emu.spec.quantities import Integer, PortNames


class Checksums(Kind):
    """ICRC, VCRC and LPCRC of captured packets are worked out again, and none is wrong."""

    at: PortNames = Field(
        default=("all",),
        description="Ports with a capture; all that have one unless given.",
        json_schema_extra=note(why="every capture that the run makes"),
    )
    at_least: Integer = Field(
        default=1,
        ge=1,
        description="So many there must be.",
        json_schema_extra=note(unit="checksums", why="a capture without any packet proves nothing"),
    )

    def in_words(self, clock: str) -> str:
        where = "" if self.at == ("all",) else f" at {', '.join(self.at)}"
        return f"at least {self.at_least:,} checksums captured{where}, and none wrong"
