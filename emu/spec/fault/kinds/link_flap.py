"""Link flap: a link that goes down and up again in every period."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, model_validator

from emu.spec.diagnostic import Diagnostic, KeyPath
from emu.spec.fault.kind import LostLink, register
from emu.spec.parameters import Parameters
from emu.spec.quantities import Time
from emu.units import write_time
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.fault import Fault
    from emu.spec.scenario import Spec


@register
class LinkFlap(LostLink):
    """The link is down for a while at the start of every period."""

    key: ClassVar[str] = "link-flap"
    meaning: ClassVar[str] = "A cable that fails again and again."
    routed_around: ClassVar[bool] = False

    period_ps: Time = Field(
        alias="period", gt=0, description="Time from the start of one loss to the next."
    )
    down_ps: Time = Field(
        alias="down", gt=0, description="How long the link is down each time; less than period."
    )

    def parameters(self, spec: Spec, port: Port) -> Parameters:
        return {"period_ps": self.period_ps, "down_ps": self.down_ps}

    def times_down(self, begin_ps: int, end_ps: int) -> Iterator[tuple[int, int]]:
        for down_ps in range(begin_ps, end_ps, self.period_ps):
            yield down_ps, min(down_ps + self.down_ps, end_ps)

    def contradictions(self, fault: Fault, at: KeyPath, spec: Spec) -> Iterator[Diagnostic]:
        if fault.for_ps is not None and fault.for_ps <= self.period_ps:
            yield Diagnostic(
                (*at, self.key, "period"),
                f"the fault is over (for: {write_time(fault.for_ps)}) before the link goes down a "
                f"second time, after {write_time(self.period_ps)}; shorten period, or use "
                "link-down",
                about=((*at, "for"),),
            )

    @model_validator(mode="after")
    def _comes_up_again(self) -> Self:
        if self.down_ps >= self.period_ps:
            raise ValueError(
                "down is not shorter than period, so the link would never come up; shorten "
                "down, or use link-down"
            )
        return self
