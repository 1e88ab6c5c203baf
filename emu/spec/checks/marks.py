"""The check of CE marks on the packets that leave by a port, by their position in the sequence."""

from __future__ import annotations

from math import sqrt
from typing import Self

from pydantic import Field, model_validator

from emu.spec import references
from emu.spec.checks.kind import CheckKind
from emu.spec.notes import note
from emu.spec.quantities import Fraction, Integer


class Marks(CheckKind):
    """The number of CE marks on some ECN-capable packets in a capture.

    If each of n packets is marked with probability p, the number of marks has a binomial
    distribution: n p marks are expected, with a standard deviation of sqrt(n p (1 - p)).
    """

    at: str = Field(description="The port by which the packets leave; it must be captured.")
    first: Integer = Field(
        ge=1,
        description="Position of the first packet, counted from 1.",
        json_schema_extra=note(unit="packets"),
    )
    last: Integer = Field(
        ge=1, description="Position of the last packet.", json_schema_extra=note(unit="packets")
    )
    probability: Fraction = Field(description="The probability that a packet is marked.")
    deviations: float = Field(
        default=4.0,
        gt=0,
        le=100,
        strict=True,
        description="The tolerance for the number of marks, in standard deviations.",
        json_schema_extra=note(
            unit="standard deviations",
            why="chance exceeds four standard deviations about once in 16,000 runs",
            source=references.BINOMIAL,
        ),
    )

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.last < self.first:
            raise ValueError(f"last {self.last} is before first {self.first}; raise it")
        return self

    @property
    def packets(self) -> int:
        return self.last - self.first + 1

    @property
    def tolerance(self) -> float:
        """The tolerance in packets."""
        return self.deviations * sqrt(self.packets * self.probability * (1 - self.probability))

    def in_words(self, clock: str) -> str:
        expected = self.packets * self.probability
        beside = f" within {self.tolerance:.0f}" if self.tolerance else ""
        return (
            f"packets {self.first:,} to {self.last:,} out of {self.at} "
            f"are marked CE {expected:,.0f} times{beside}"
        )
