"""Checks of fairness among flows."""

from __future__ import annotations

from pydantic import Field

from emu.spec.checks.bounds import Bounds
from emu.spec.checks.kind import CheckKind, Window
from emu.spec.quantities import Fraction


def _write(value: float) -> str:
    return f"{value:.3g}"


def _per_cent(value: float) -> str:
    return f"{100 * value:.3g} %"


class Fairness(Bounds[Fraction], Window, CheckKind):
    """Jain's index of the rates of a traffic entry's flows: 1 if all are equal, 1/n if one flow has
    the whole rate.

    Source: Jain, Chiu and Hawe, DEC-TR-301, 1984: (sum x)^2 / (n sum x^2).
    """

    traffic: str = Field(description="Name of the traffic entry.")

    def in_words(self, clock: str) -> str:
        return f"Jain's index of {self.traffic}{self.when} {self.bounds_in_words(clock, _write)}"


class Share(Bounds[Fraction], Window, CheckKind):
    """A flow's share of the bytes that its traffic entry delivered."""

    flow: str = Field(description="Name of the flow.")
    traffic: str = Field(description="Name of the traffic entry.")

    def in_words(self, clock: str) -> str:
        bounds = self.bounds_in_words(clock, _per_cent)
        return f"share of {self.flow} in {self.traffic}{self.when} {bounds}"
