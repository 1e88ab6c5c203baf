"""When flows must be over."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from emu.spec.checks.kind import Kind
from emu.spec.quantities import Time
from emu.units import PS_PER_NS, format_time_ns


class Finish(Kind):
    """A time by which a flow, or every flow of a traffic entry, must be over."""

    flow: str | None = Field(default=None, description="Name of the flow.")
    traffic: str | None = Field(
        default=None, description="Name of the traffic entry, instead of a flow."
    )
    by_ps: Time = Field(alias="by", gt=0, description="Emulated time since the start of the run.")

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        if (self.flow is None) == (self.traffic is None):
            raise ValueError("give either flow or traffic")
        return self

    def in_words(self, clock: str) -> str:
        return f"{self.flow or self.traffic} over by {format_time_ns(self.by_ps / PS_PER_NS)}"
