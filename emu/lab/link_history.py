"""Which links of a lab were lost or came back, and when routes followed."""

from __future__ import annotations

from emu.lab.ipc.messages import Converging, Json, LinksChanged
from emu.units import PS_PER_NS

_KEPT = 1000
"""The latest: a link that flaps for days makes no more."""


class LinkHistory:
    """One thread writes, any may read."""

    def __init__(self) -> None:
        self.entries: list[Json] = []
        """The fields of an `emu.measure.look.LinkChange`, of each. Never changed in place."""

    def changed(self, told: LinksChanged) -> None:
        entry = {"at_ns": told.at_ps // PS_PER_NS, "down": told.down, "in_force_ns": None}
        self.entries = [*self.entries, entry][-_KEPT:]

    def converging(self, told: Converging) -> None:
        at_ns, in_force_ns = told.at_ps // PS_PER_NS, told.in_force_ps // PS_PER_NS
        self.entries = [
            {**entry, "in_force_ns": in_force_ns} if entry["at_ns"] == at_ns else entry
            for entry in self.entries
        ]
