"""The history of link changes in a lab, and of the times when routes followed them."""

from __future__ import annotations

from dataclasses import replace

from emu.lab.ipc.routing import Converging, LinksChanged
from emu.measure.lab_snapshot import LinkChange
from emu.units import PS_PER_NS

_KEPT = 1000
"""The most changes that are kept, so that a flapping link does not use up memory."""


class LinkHistory:
    """The latest link changes. One thread may write, any may read."""

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
