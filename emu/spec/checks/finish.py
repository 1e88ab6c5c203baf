"""The check of the time at which flows finish."""

from __future__ import annotations

from pydantic import Field

from emu.spec.checks.kind import CheckKind, Subject
from emu.spec.quantities import Time
from emu.units import PS_PER_NS, format_time_ns


class Finish(Subject, CheckKind):
    """A time by which a flow, or every flow of a traffic entry, must have finished."""

    by_ps: Time = Field(alias="by", gt=0, description="Emulated time since the start of the run.")

    def in_words(self, clock: str) -> str:
        return f"{self.subject} over by {format_time_ns(self.by_ps / PS_PER_NS)}"
