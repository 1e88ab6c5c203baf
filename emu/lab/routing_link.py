"""The shim's part in rerouting when links change. The lab's part is `emu.lab.live_subnet`
(InfiniBand) or `emu.lab.rerouting` (Ethernet).

It reports lost links as soon as the emulation reaches the time of the loss, and loads the tables
or routes of the answer into the switches. Both happen between two packets.

If Open vSwitch forwards, the shim hints the next hops from a link change until Open vSwitch's
tables are updated, so that packets change their path at the exact time.
"""

from __future__ import annotations

from emu.bindings.af_packet_driver import AfPacketDriver, Outcome
from emu.bindings.fabric import Fabric
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.lab.ipc.poller import Poller
from emu.lab.ipc.routing import (
    Converging,
    LinksChanged,
    Routes,
    RoutesLoaded,
    Tables,
    Unanswered,
)
from emu.units import PS_PER_NS


class RouteChanges:
    """Exchanges messages with the lab's routing thread, on either clock."""

    def __init__(self, routing: Channel) -> None:
        self._routing = routing
        self._changed_ps = 0
        """The emulated time of the latest link change."""
        self.in_force_ps = 0
        """The emulated time from which all switches use the latest routes."""
        self._number = 0
        """That of the latest routes."""
        self._loaded = True
        """Whether Open vSwitch's tables have the latest routes."""
        self._hints = False
        self.awaits_answer = False
        """Whether the lab has not answered the latest link change."""

    def fileno(self) -> int:
        """Readable when the lab has sent a message."""
        return self._routing.fileno()

    def report(self, fabric: Fabric) -> None:
        """Reports link changes since the last call, if there are any."""
        changes = fabric.take_link_changes()
        if changes is None:
            return
        at_ps, down = changes
        if not fabric.spec.fabric_kind.has_subnet_manager:
            self._choose(fabric)
        self._changed_ps, self.awaits_answer = at_ps, True
        names = tuple(sorted(fabric.topology.port_name[cable.a] for cable in down))
        self._routing.send(LinksChanged(at_ps, names))

    def take_answers(self, fabric: Fabric) -> None:
        """Applies the messages that the lab has sent."""
        while self._routing.has_more():
            self._apply(fabric, self._routing.receive())

    def _apply(self, fabric: Fabric, message: Message) -> None:
        match message:
            case Tables(lfts, at_ps, down, seconds):
                ports = fabric.topology.port_named
                cables = frozenset(fabric.topology.cable[ports[name]] for name in down)
                self._converge(at_ps, fabric.follow(lfts, cables, at_ps, seconds))
            case Routes():
                self._follow(fabric, message)
            case RoutesLoaded(number):
                self._loaded = number == self._number and not self.awaits_answer
                self.rely_on_tables(fabric)
            case Unanswered(at_ps):
                self._answered(at_ps)

    def _follow(self, fabric: Fabric, routes: Routes) -> None:
        self._number = routes.number
        self._choose(fabric)
        in_force_ps = fabric.reroute(routes.changes, routes.at_ps)
        for step in routes.learned:
            in_force_ps = max(in_force_ps, fabric.set_routes(step.changes, step.at_ps))
        self._converge(routes.at_ps, in_force_ps)

    def _choose(self, fabric: Fabric) -> None:
        """The shim chooses next hops until Open vSwitch's tables have the latest routes."""
        fabric.hint(always=True)
        self._hints, self._loaded = True, False

    def _converge(self, at_ps: int, in_force_ps: int) -> None:
        self.in_force_ps = in_force_ps
        self._routing.send(Converging(at_ps, in_force_ps))
        self._answered(at_ps)

    def _answered(self, at_ps: int) -> None:
        if at_ps == self._changed_ps:
            self.awaits_answer = False

    def rely_on_tables(self, fabric: Fabric) -> None:
        """Ends the hints when Open vSwitch's tables have the routes that are in force."""
        if self._hints and self._loaded and fabric.now_ns * PS_PER_NS > self.in_force_ps:
            fabric.hint(always=False)
            self._hints = False


class RoutingLink:
    """Runs a driver of the real clock, and stops it to exchange messages with the lab's routing
    thread."""

    def __init__(self, lab: Channel, routing: Channel | None) -> None:
        """A message on either channel stops the driver. `routing`: the channel to the routing
        thread; None: the lab has none."""
        self._routing = routing
        self._changes = RouteChanges(routing) if routing else None
        self._poller = Poller(lab, *([routing] if routing else []))

    def fileno(self) -> int:
        """Readable when either channel has a message."""
        return self._poller.fileno()

    def run(
        self, driver: AfPacketDriver, fabric: Fabric, start_ns: int, *, seconds: float
    ) -> Outcome:
        """As `AfPacketDriver.run`, and exchanges messages with the routing thread."""
        if self._changes is None or self._routing is None:
            return driver.run(start_ns, seconds=seconds)
        driver.finish_on(fabric.links_changed_flag)
        outcome = driver.run(start_ns, seconds=seconds)
        self._changes.report(fabric)
        self._changes.rely_on_tables(fabric)
        if outcome is Outcome.WOKEN and self._poller.has_message(self._routing):
            self._changes.take_answers(fabric)
            return Outcome.PAUSED
        return Outcome.PAUSED if outcome is Outcome.FINISHED else outcome
