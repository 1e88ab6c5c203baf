"""Delay: packets take longer on a cable."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from emu.spec.fault.kind import OnLine, register
from emu.spec.parameters import Parameters
from emu.spec.quantities import Time
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.scenario import Spec


@register
class Delay(OnLine):
    """All packets arrive later, in their order, as if the cable were longer."""

    key: ClassVar[str] = "delay"
    meaning: ClassVar[str] = "Packets take longer on a cable."

    by_ps: Time = Field(alias="by", gt=0, description="How much later, in each direction.")

    def parameters(self, spec: Spec, port: Port) -> Parameters:
        return {"by_ps": self.by_ps}
