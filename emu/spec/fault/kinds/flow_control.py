"""Flow control: InfiniBand's credit updates are lost or damaged on a cable."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from emu import fabric_kind
from emu.spec.fault.kind import OnLine, exactly_one, register
from emu.spec.fault.packet_choice import choice_parameters
from emu.spec.notes import note
from emu.spec.parameters import Parameters
from emu.spec.quantities import Fraction, Integer
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.scenario import Spec


@register
class FlowControl(OnLine):
    """InfiniBand's credit updates are hit, and nothing else. Each direction counts its own."""

    key: ClassVar[str] = "flow-control"
    meaning: ClassVar[str] = "Credit updates are lost or damaged on a cable. InfiniBand only."
    unavailable: ClassVar = {
        fabric_kind.FlowControl.PAUSES: "RoCE has no credit updates; use loss, pause-storm or "
        "slow-receiver, or fabric: ib"
    }

    probability: Fraction | None = Field(
        default=None, gt=0, description="Share of updates that are hit, at random, e.g. 10%."
    )
    every: Integer | None = Field(
        default=None,
        ge=1,
        lt=2**63,
        description="Every n-th update is hit.",
        json_schema_extra=note(unit="updates"),
    )
    effect: Literal["lost", "damaged"] = Field(
        default="lost",
        description="lost: they do not arrive. damaged: they arrive with a wrong LPCRC, and are "
        "counted.",
        json_schema_extra=note(why="a lost update shows the recovery by the next one"),
    )

    def parameters(self, spec: Spec, port: Port) -> Parameters:
        choice = choice_parameters(self.probability, self.every)
        return {**choice, "damages": self.effect == "damaged"}

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        exactly_one(probability=self.probability, every=self.every)
        return self
