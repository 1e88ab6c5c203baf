"""The check of a flow's goodput, from its start to its end."""

from __future__ import annotations

from pydantic import Field

from emu.spec.checks.bounds import Bounds
from emu.spec.checks.kind import CheckKind
from emu.spec.quantities import Rate
from emu.units import format_rate


class Goodput(Bounds[Rate], CheckKind):
    """Bounds for the goodput of one flow, from its start to its end."""

    flow: str = Field(description="Name of the flow.")

    def in_words(self, clock: str) -> str:
        return f"goodput of {self.flow} {self.bounds_in_words(clock, format_rate)}"
