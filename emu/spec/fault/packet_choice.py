"""Which packets of a line a fault hits: some at random, every n-th, or those with given PSNs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from emu.spec.fault.kind import OnLine, exactly_one
from emu.spec.notes import note
from emu.spec.parameters import Parameters
from emu.spec.quantities import Fraction, Integer
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.scenario import Spec

MAX_PSNS = 64
"""Room in the core's list (`CHOICE_PSNS`, packet_choice.h)."""


def choice_parameters(probability: float | None, every: int | None) -> Parameters:
    """The core's parameters of a choice without PSNs."""
    return {"every": every or 0, "probability_2_32": round((probability or 0) * 2**32)}


def _distinct(psns: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(psns)) < len(psns):
        raise ValueError("names a PSN twice; each is hit once")
    return psns


class OnPackets(OnLine):
    """A fault that hits some packets. Each direction of the cable counts its own."""

    probability: Fraction | None = Field(
        default=None, gt=0, description="Share of packets that are hit, at random, e.g. 0.1%."
    )
    every: Integer | None = Field(
        default=None,
        ge=1,
        lt=2**63,
        description="Every n-th packet is hit.",
        json_schema_extra=note(unit="packets"),
    )
    psn: Annotated[
        tuple[Annotated[Integer, Field(ge=0, lt=2**24)], ...] | None, AfterValidator(_distinct)
    ] = Field(
        default=None,
        min_length=1,
        max_length=MAX_PSNS,
        description="Packets with these PSNs (as in a capture) are hit, each only the first time "
        "that it passes.",
        json_schema_extra=note(unit="PSNs"),
    )

    def parameters(self, spec: Spec, port: Port) -> Parameters:
        if self.psn is None:
            return choice_parameters(self.probability, self.every)
        return {"by_psn": 1, "psn_count": len(self.psn), "psns": self.psn}

    @property
    def hits_all(self) -> bool:
        """Whether it hits every packet, in both directions."""
        return self.direction == "both" and (self.every == 1 or self.probability == 1)

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        exactly_one(probability=self.probability, every=self.every, psn=self.psn)
        return self
