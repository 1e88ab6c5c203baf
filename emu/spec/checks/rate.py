"""The check of the rate of flows in a part of the run."""

from __future__ import annotations

from emu.spec.checks.bounds import Bounds
from emu.spec.checks.kind import CheckKind, Subject, Window
from emu.spec.quantities import Rate
from emu.units import format_rate


class DeliveryRate(Bounds[Rate], Window, Subject, CheckKind):
    """Bounds for the bits of messages per second that a flow or a traffic entry delivered."""

    def in_words(self, clock: str) -> str:
        bounds = self.bounds_in_words(clock, format_rate)
        return f"rate of {self.subject}{self.when} {bounds}"
