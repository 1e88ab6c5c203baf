"""Reordering: packets arrive late, after packets that were sent later on the same cable."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from emu.spec.fault.kind import register
from emu.spec.fault.packet_choice import OnPackets
from emu.spec.notes import note
from emu.spec.parameters import Parameters
from emu.spec.quantities import Time
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.scenario import Spec


@register
class Reordering(OnPackets):
    """The packets arrive late, after packets that were sent later."""

    key: ClassVar[str] = "reordering"
    meaning: ClassVar[str] = "Packets arrive late, after packets that were sent later."

    by_ps: Time = Field(
        default=5_000_000,
        alias="by",
        gt=0,
        description="How much later the packets arrive.",
        json_schema_extra=note(
            why="longer than a packet of 4096 bytes takes on any link from 10 Gbit/s, so others "
            "overtake it"
        ),
    )

    def parameters(self, spec: Spec, port: Port) -> Parameters:
        return {**super().parameters(spec, port), "by_ps": self.by_ps}
