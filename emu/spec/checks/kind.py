"""The base of all kinds of checks."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

from pydantic import Field, model_validator

from emu.spec.base import Model
from emu.spec.notes import note
from emu.spec.quantities import Time
from emu.units import PS_PER_NS, format_time_ns


class CheckKind(Model):
    """One kind of check. The keys of names are the same in all kinds: flow, traffic, at."""

    @abstractmethod
    def in_words(self, clock: str) -> str:
        """The requirement for a run on the clock of this name."""


class Subject(Model):
    """A flow, or all flows of a traffic entry."""

    flow: str | None = Field(default=None, description="Name of the flow.")
    traffic: str | None = Field(
        default=None, description="Name of the traffic entry, instead of a flow."
    )

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        if (self.flow is None) == (self.traffic is None):
            raise ValueError("give either flow or traffic")
        return self

    @property
    def subject(self) -> str:
        """The name of the flow or of the traffic entry."""
        return self.flow or self.traffic or ""


class Window(Model):
    """The part of a run that a check measures."""

    after_ps: Time = Field(
        default=0,
        alias="after",
        description="Emulated time at which measuring starts.",
        json_schema_extra=note(why="the run is measured from its start"),
    )
    until_ps: Time | None = Field(
        default=None,
        alias="until",
        description="Emulated time at which measuring ends; the end of the run unless given.",
    )

    @property
    def when(self) -> str:
        """` from 10 ms to 20 ms`; empty for the whole run."""
        after, until = (
            "" if ps is None else format_time_ns(ps / PS_PER_NS)
            for ps in (self.after_ps, self.until_ps)
        )
        return (f" from {after}" if self.after_ps else "") + (f" to {until}" if until else "")
