"""Bounds for a measured number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Self, TypeVar

from pydantic import Field, model_validator

from emu.clocks import CLOCKS
from emu.spec.base import Model
from emu.spec.notes import note
from emu.spec.quantities import Fraction

Value = TypeVar("Value", int, float)


class Bounds(Model, Generic[Value]):
    """A value with a tolerance, or a range; at least one of them."""

    is_: Value | None = Field(default=None, alias="is", description="The value that is expected.")
    within: Fraction = Field(
        default=0.0,
        description="Tolerance: how far the measured value may be from `is`, as a fraction of it.",
        json_schema_extra=note(
            why="an exact value; give the tolerance that the source of the value has"
        ),
    )
    within_virtual: Fraction | None = Field(
        default=None, description="The same for the virtual clock; `within` unless given."
    )
    at_least: Value | None = Field(default=None, description="The least that passes.")
    at_most: Value | None = Field(default=None, description="The most that passes.")

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        low, high = self.at_least, self.at_most
        if self.is_ is None and low is None and high is None:
            raise ValueError("has no bound; give at_least, at_most, both, or is")
        if low is not None and high is not None and low > high:
            raise ValueError("at_least is above at_most, so nothing could pass")
        if self.is_ is None and self.model_fields_set & {"within", "within_virtual"}:
            raise ValueError("`within` is a tolerance around a value; give the value as `is`")
        return self

    def allow(self, measured: float, clock: str) -> bool:
        """Whether a measured number passes for a run on the clock of this name."""
        return (
            (self.is_ is None or abs(measured - self.is_) <= self._tolerance(clock) * abs(self.is_))
            and (self.at_least is None or measured >= self.at_least)
            and (self.at_most is None or measured <= self.at_most)
        )

    def bounds_in_words(self, clock: str, write: Callable[[float], str]) -> str:
        """`is 20.15 KB within 30 %`, `at least 60 Gb/s and at most 70 Gb/s`."""
        return " and ".join(self._words(clock, write))

    def _words(self, clock: str, write: Callable[[float], str]) -> Iterator[str]:
        if self.is_ is not None:
            tolerance = self._tolerance(clock)
            yield f"is {write(self.is_)}" + (
                f" within {100 * tolerance:.3g} %" if tolerance else ""
            )
        if self.at_least is not None:
            yield f"at least {write(self.at_least)}"
        if self.at_most is not None:
            yield f"at most {write(self.at_most)}"

    def _tolerance(self, clock: str) -> float:
        if CLOCKS[clock].is_exact and self.within_virtual is not None:
            return self.within_virtual
        return self.within
