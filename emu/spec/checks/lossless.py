"""Nothing of a priority was dropped anywhere."""

from __future__ import annotations

from pydantic import Field

from emu.spec.checks.kind import Kind
from emu.spec.notes import note
from emu.spec.quantities import Priority


class Lossless(Kind):
    """No packet of a priority was dropped anywhere."""

    priority: Priority = Field(
        description="The priority, 0 to 7.", json_schema_extra=note(unit="priority")
    )

    def in_words(self, clock: str) -> str:
        return f"priority {self.priority} is lossless"
