"""How deep an egress queue was."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emu.spec.checks.bounds import Bounds
from emu.spec.checks.kind import Kind, Window
from emu.spec.quantities import Size
from emu.units import format_size


class QueueDepth(Bounds[Size], Window, Kind):
    """Bounds for the depth of a switch port's egress queues, all classes together."""

    port: str = Field(description="The port, e.g. leaf1:h1.")
    statistic: Literal["mean", "max"] = Field(
        default="mean", description="Its mean over time, or the most of all samples."
    )

    def in_words(self, clock: str) -> str:
        bounds = self.bounds_in_words(clock, format_size)
        return f"{self.statistic} queue of {self.port}{self.when} {bounds}"
