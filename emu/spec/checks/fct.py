"""The check of FCT slowdown: completion time under load over completion time alone."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, WithJsonSchema, model_validator

from emu.spec import references
from emu.spec.checks.bounds import Bounds
from emu.spec.checks.kind import CheckKind
from emu.spec.notes import note
from emu.spec.quantities import Size
from emu.units import format_size

Times = Annotated[
    float,
    WithJsonSchema({"type": "number", **note(unit="times the completion time of a message alone")}),
]


class FctSlowdownBounds(Bounds[Times], CheckKind):
    """Bounds for the FCT slowdown of a background load's messages, of all or of some sizes."""

    traffic: str = Field(description="Name of the traffic entry, of pattern background.")
    above_bytes: Size = Field(
        default=0,
        alias="above",
        description="Only messages longer than this.",
        json_schema_extra=note(why="0: messages of every size"),
    )
    up_to_bytes: Size | None = Field(
        default=None, alias="up_to", description="Only messages of this length or shorter."
    )
    percent: float = Field(
        default=99.0,
        gt=0,
        le=100,
        description="The percentile of the messages that the bounds apply to; 100: the largest.",
        json_schema_extra=note(
            unit="per cent",
            why="papers on congestion control report the 99th percentile",
            source=references.HPCC,
        ),
    )

    @model_validator(mode="after")
    def _some_size(self) -> Self:
        if self.up_to_bytes is not None and self.up_to_bytes <= self.above_bytes:
            raise ValueError("no length is above `above` and not above `up_to`; raise up_to")
        return self

    @property
    def sizes(self) -> str:
        """` above 10 KB up to 1 MB`; empty for all sizes."""
        above = f" above {format_size(self.above_bytes)}" if self.above_bytes else ""
        return above + (f" up to {format_size(self.up_to_bytes)}" if self.up_to_bytes else "")

    def in_words(self, clock: str) -> str:
        bounds = self.bounds_in_words(clock, lambda times: f"{times:g}")
        return f"FCT slowdown of {self.traffic}{self.sizes}, {self.percent:g} %, {bounds}"
