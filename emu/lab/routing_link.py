"""The shim's part in routing anew when links change; `emu.lab.live_subnet` (InfiniBand) and
`emu.lab.rerouting` (Ethernet) are the other end.

It tells which links are lost, as soon as the emulation has come to that moment, and has
the switches follow the tables or routes that come back. All of it happens between two
packets.

Where Open vSwitch forwards, the shim hints at next hops from the moment a link changes
until Open vSwitch's own tables follow: so packets change their way at the exact time.
"""

from __future__ import annotations

from emu.bindings.af_packet_driver import AfPacketDriver, Outcome
from emu.bindings.fabric import Fabric
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.lab.ipc.poller import Poller
from emu.lab.ipc.routing import Converging, LinksChanged, Routes, RoutesLoaded, Tables
from emu.units import PS_PER_NS


class RoutingLink:
    """A driver that stops for whoever routes anew, too, where there is somebody."""

    def __init__(self, lab: Channel, line: Channel | None) -> None:
        """`lab` and `line`: what comes by either stops the driver."""
        self._line = line
        self._poller = Poller(lab, *([line] if line else []))
        self._changed_ps = 0
        """When links changed last."""
        self._in_force_ps = 0
        """When the latest routes are in force."""
        self._loaded = True
        """Whether Open vSwitch's tables have them."""
        self._hints = False

    def fileno(self) -> int:
        """Readable when there is something on either channel."""
        return self._poller.fileno()

    def run(
        self, driver: AfPacketDriver, fabric: Fabric, start_ns: int, *, seconds: float
    ) -> Outcome:
        """As `AfPacketDriver.run`, which it is where nobody routes anew."""
        if self._line is None:
            return driver.run(start_ns, seconds=seconds)
        driver.finish_on(fabric.links_changed_flag)
        outcome = driver.run(start_ns, seconds=seconds)
        self._tell(fabric, self._line)
        self._rely_on_tables(fabric)
        if outcome is Outcome.WOKEN and self._poller.has_message(self._line):
            while self._line.has_more():
                self._obey(fabric, self._line, self._line.receive())
            return Outcome.PAUSED
        return Outcome.PAUSED if outcome is Outcome.FINISHED else outcome

    def _tell(self, fabric: Fabric, line: Channel) -> None:
        changes = fabric.take_link_changes()
        if changes is None:
            return
        at_ps, down = changes
        if not fabric.infiniband:
            fabric.hint(always=True)
            self._hints, self._loaded, self._changed_ps = True, False, at_ps
        names = tuple(sorted(fabric.topology.port_name[cable.a] for cable in down))
        line.send(LinksChanged(at_ps, names))

    def _obey(self, fabric: Fabric, line: Channel, message: Message) -> None:
        match message:
            case Tables(lfts, at_ps, down, seconds):
                ports = fabric.topology.port_named
                cables = frozenset(fabric.topology.cable[ports[name]] for name in down)
                in_force_ps = fabric.follow(lfts, cables, at_ps, seconds)
                line.send(Converging(at_ps, in_force_ps))
            case Routes(at_ps, changes):
                self._in_force_ps = fabric.reroute(changes, at_ps)
                line.send(Converging(at_ps, self._in_force_ps))
            case RoutesLoaded(at_ps):
                self._loaded = at_ps == self._changed_ps
                self._rely_on_tables(fabric)

    def _rely_on_tables(self, fabric: Fabric) -> None:
        """Ends the hints when Open vSwitch's tables are those that are in force."""
        if self._hints and self._loaded and fabric.now_ns * PS_PER_NS > self._in_force_ps:
            fabric.hint(always=False)
            self._hints = False
