"""The check of the latency of requests."""

from __future__ import annotations

from pydantic import Field

from emu.spec.checks.bounds import Bounds
from emu.spec.checks.ios import Way
from emu.spec.checks.kind import CheckKind
from emu.spec.notes import note
from emu.spec.quantities import Time
from emu.units import PS_PER_NS, format_time_ns


class LatencyBounds(Bounds[Time], CheckKind):
    """Bounds for the latency of a traffic entry's requests: of messages, or of whole I/Os."""

    traffic: str = Field(description="Name of the traffic entry.")
    way: Way | None = Field(
        default=None, description="For storage: only its reads, or only its writes."
    )
    percent: float = Field(
        default=99.0,
        gt=0,
        le=100,
        description="The percentile of the requests that the bounds apply to; 100: the slowest.",
        json_schema_extra=note(
            unit="per cent",
            why="service level objectives are usually written for the 99th percentile",
        ),
    )

    def in_words(self, clock: str) -> str:
        bounds = self.bounds_in_words(clock, lambda ps: format_time_ns(ps / PS_PER_NS))
        what = f"{self.way} latency" if self.way else "latency"
        return f"{what} of {self.traffic}, {self.percent:g} %, {bounds}"
