"""The check of the depth of egress queues."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emu.spec import references
from emu.spec.checks.bounds import Bounds
from emu.spec.checks.kind import CheckKind, Window
from emu.spec.notes import note
from emu.spec.quantities import Size
from emu.units import format_size


class QueueDepth(Bounds[Size], Window, CheckKind):
    """Bounds for the depth of a switch port's egress queues, all classes together."""

    port: str = Field(description="The port, e.g. leaf1:h1.")
    statistic: Literal["mean", "max"] = Field(
        default="mean",
        description="The mean depth over time, or the maximum of all samples.",
        json_schema_extra=note(
            why="the mean is what fluid models of congestion control predict",
            source=references.DCQCN_STABILITY,
        ),
    )

    def in_words(self, clock: str) -> str:
        bounds = self.bounds_in_words(clock, format_size)
        return f"{self.statistic} queue of {self.port}{self.when} {bounds}"
