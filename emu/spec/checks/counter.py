"""Checks of counters."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema

from emu.spec.checks.bounds import Bounds
from emu.spec.checks.kind import CheckKind
from emu.spec.notes import note
from emu.spec.quantities import Fraction, Integer, PortNames

_AT = (
    "Ports and hosts whose counts are summed; a switch stands for all its ports, `total` for the "
    "fabric. All ports and hosts unless given."
)


Count = Annotated[
    Integer, WithJsonSchema({"type": ["integer", "string"], **note(unit="a count, or a formula")})
]
"""A whole number, or a formula of one (see `emu.spec.formula`)."""


class Counter(Bounds[Count], CheckKind):
    """Bounds for a counter, summed over ports and hosts."""

    name: str = Field(description="The counter, e.g. tx_prio3_pause, np_cnp_sent, PortXmitWait.")
    at: PortNames = Field(
        default=("all",),
        description=_AT,
        json_schema_extra=note(why="a counter without a place is that of the whole fabric"),
    )

    def in_words(self, clock: str) -> str:
        bounds = self.bounds_in_words(clock, lambda count: f"{count:,.0f}")
        return f"{self.name}{_where(self.at)} {bounds}"


class Agreement(CheckKind):
    """The comparison of two counters."""

    name: str = Field(description="The first counter.")
    at: PortNames = Field(
        default=("all",), description=_AT, json_schema_extra=note(why="the whole fabric")
    )
    like: str = Field(description="The second counter.")
    like_at: PortNames = Field(
        default=("all",), description=_AT, json_schema_extra=note(why="the whole fabric")
    )
    within: Fraction = Field(
        default=0.0,
        description="How far the first may differ from the second.",
        json_schema_extra=note(
            why="two counters of the same events are equal unless you allow a difference"
        ),
    )

    def in_words(self, clock: str) -> str:
        other = f"{self.like}{_where(self.like_at)}"
        return f"{self.name}{_where(self.at)} is {other} within {100 * self.within:.3g} %"


def _where(at: tuple[str, ...]) -> str:
    return "" if at == ("all",) else f" of {', '.join(at)}"
