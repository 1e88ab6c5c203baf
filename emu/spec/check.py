"""The `verify:` section: what must hold after a run, one check per entry."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from emu.spec.base import Model
from emu.spec.quantities import Priority, Rate, Time

KINDS = ("lossless", "completed", "goodput", "finish")


class Lossless(Model):
    """No packet of a priority was dropped anywhere."""

    priority: Priority = Field(description="The priority, 0 to 7.")


class Goodput(Model):
    """Bounds for the goodput of one flow, from its start to its end."""

    flow: str = Field(description="Name of the flow.")
    at_least_bps: Rate | None = Field(
        default=None, alias="at_least", description="Lowest goodput allowed."
    )
    at_most_bps: Rate | None = Field(
        default=None, alias="at_most", description="Highest goodput allowed."
    )

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.at_least_bps is None and self.at_most_bps is None:
            raise ValueError("checks nothing; give at_least, at_most or both")
        if None not in (self.at_least_bps, self.at_most_bps) and (
            (self.at_least_bps or 0) > (self.at_most_bps or 0)
        ):
            raise ValueError("at_least is above at_most, so no goodput could pass")
        return self


class Finish(Model):
    """A time by which a flow, or every flow of a traffic entry, must be over."""

    flow: str | None = Field(default=None, description="Name of the flow.")
    traffic: str | None = Field(
        default=None, description="Name of the traffic entry, instead of a flow."
    )
    by_ps: Time = Field(alias="by", gt=0, description="Emulated time since the start of the run.")

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        if (self.flow is None) == (self.traffic is None):
            raise ValueError("give either flow or traffic")
        return self


class Check(Model):
    """One check; exactly one of its kinds is there."""

    lossless: Lossless | None = Field(
        default=None, description="Nothing of a priority was dropped."
    )
    completed: Literal["all"] | None = Field(
        default=None, description="`all`: every message arrived, and every byte as it was sent."
    )
    goodput: Goodput | None = Field(default=None, description="Bounds for the goodput of a flow.")
    finish: Finish | None = Field(default=None, description="A time by which flows must be over.")
    fail: str | None = Field(default=None, description="What to say when the check fails.")

    @property
    def kind(self) -> str:
        """Which of the kinds it is."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            there = " and ".join(kinds) or "none"
            raise ValueError(f"a check has exactly one of {', '.join(KINDS)}; this has {there}")
        return self
