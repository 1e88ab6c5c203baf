"""Which links of a lab were lost or came back, and when routes followed."""

from __future__ import annotations

from dataclasses import replace

from emu.lab.ipc.routing import Converging, LinksChanged
from emu.measure.lab_snapshot import LinkChange
from emu.units import PS_PER_NS

_KEPT = 1000
"""The latest changes: a link that flaps for days adds no more."""


class LinkHistory:
    """One thread writes, any may read."""

    def __init__(self) -> None:
        self.entries: tuple[LinkChange, ...] = ()

    def changed(self, change: LinksChanged) -> None:
        entry = LinkChange(change.at_ps // PS_PER_NS, change.down, None)
        self.entries = (*self.entries, entry)[-_KEPT:]

    def converging(self, answer: Converging) -> None:
        at_ns, in_force_ns = answer.at_ps // PS_PER_NS, answer.in_force_ps // PS_PER_NS
        self.entries = tuple(
            replace(entry, in_force_ns=in_force_ns) if entry.at_ns == at_ns else entry
            for entry in self.entries
        )
