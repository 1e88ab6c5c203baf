"""How fast a flow was while others ran."""

from __future__ import annotations

from pydantic import Field

from emu.spec.checks.bounds import Bounds
from emu.spec.checks.kind import Kind, Window
from emu.spec.quantities import Rate
from emu.units import format_rate


class DeliveryRate(Bounds[Rate], Window, Kind):
    """Bounds for the bits of message per second that a flow, or a traffic entry, delivered."""

    flow: str | None = Field(default=None, description="Name of the flow.")
    traffic: str | None = Field(
        default=None, description="Name of the traffic entry: all its flows together."
    )

    def in_words(self, clock: str) -> str:
        subject = self.flow or self.traffic
        return f"rate of {subject}{self.when} {self.bounds_in_words(clock, format_rate)}"
