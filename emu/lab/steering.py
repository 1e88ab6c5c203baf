"""The shim's part in InfiniBand's subnet management (`emu.lab.subnet` is the other end).

It tells which links are lost, as soon as the emulation has come to that moment, and has
the switches follow the tables that come back. All of it happens between two packets.
"""

from __future__ import annotations

from emu.lab.channel import Channel
from emu.lab.messages import LinksChanged, Tables
from emu.lab.wakers import Wakers
from emu.shim.fabric import Fabric
from emu.shim.live import Live, Outcome
from emu.subnet.subnet import lfts_from_json


class Steering:
    """A driver that stops for the subnet manager, too, where there is one."""

    def __init__(self, lab: Channel, line: Channel | None) -> None:
        """`lab` and `line`: what comes by either stops the driver."""
        self._line = line
        self._wakers = Wakers(lab, *([line] if line else []))

    def fileno(self) -> int:
        """Readable when there is something on either channel."""
        return self._wakers.fileno()

    def run(self, live: Live, fabric: Fabric, start_ns: int, *, seconds: float) -> Outcome:
        """As `Live.run`, which it is where nobody manages the fabric."""
        if self._line is None:
            return live.run(start_ns, seconds=seconds)
        live.finish_on(fabric.links_changed_flag)
        outcome = live.run(start_ns, seconds=seconds)
        self._tell(fabric, self._line)
        if outcome is Outcome.WOKEN and self._wakers.is_spoken_to(self._line):
            self._obey(fabric, self._line.expect(Tables))
            return Outcome.PAUSED
        return Outcome.PAUSED if outcome is Outcome.FINISHED else outcome

    def _tell(self, fabric: Fabric, line: Channel) -> None:
        changes = fabric.take_link_changes()
        if changes is not None:
            at_ps, down = changes
            names = sorted(fabric.topology.port_name[cable.a] for cable in down)
            line.send(LinksChanged(at_ps, names))

    def _obey(self, fabric: Fabric, tables: Tables) -> None:
        topology = fabric.topology
        down = frozenset(topology.cable[topology.port_named[name]] for name in tables.down)
        fabric.follow(lfts_from_json(tables.lfts), down, tables.at_ps, tables.seconds)
