"""Reroutes a running Ethernet fabric when links are lost or come back.

    shim                      lab (this file)                      Open vSwitch
     a link goes down
     LinksChanged ───────────▶ shortest paths of what is left
     switches follow ◀─ Routes ─┤
     Converging ─────────────▶  └───────── new groups, flows ─────▶ tables follow
     hints end ◀─ RoutesLoaded ───────────────────────────────────────┘

It replaces BGP, without BGP's messages: switches use the new routes `convergence` after the links
changed, or when the lab's answer arrives if that is later. A run whose faults are all in its spec
does not need this: its routes are known beforehand (`emu.spec.outages`).

Two threads run as long as the lab: one answers the shim at once, the other loads tables.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from emu.errors import EmuError, UsageError
from emu.lab import ovs
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.lab.ipc.routing import Converging, LinksChanged, Routes, RoutesLoaded
from emu.lab.link_history import LinkHistory
from emu.lab.routes import GroupIds, RouteTable, change_lines, route_table
from emu.spec.outages import degraded
from emu.spec.scenario import Spec
from topologies.graph import Cable, Topology


def refuse_bgp(spec: Spec) -> None:
    """Raises UsageError for BGP, which runs only before a run whose faults are in the spec."""
    if spec.has_bgp:
        raise UsageError(
            "switches.routing.control_plane: a lab that stays up has no BGP; use `emu run` with "
            "the faults in the spec, or --set switches.routing.control_plane=static"
        )


class LiveRouting:
    """The routes of a lab's fabric. It exists before the fabric starts."""

    def __init__(self, spec: Spec, *, bridges: bool) -> None:
        """`bridges`: whether Open vSwitch forwards, by the tables of `route_tables(live=True)`.

        Raises UsageError as `refuse_bgp` does.
        """
        refuse_bgp(spec)
        self._spec = spec
        self._whole = spec.topology.build()
        self._ids: dict[str, GroupIds] = {switch: {} for switch in self._whole.switch}
        self._tables = {}
        if bridges:
            self._tables = {name: self._table(name, self._whole) for name in self._whole.switch}
        self.notes: list[str] = []
        """Notes for the lab's user."""
        self.links = LinkHistory()
        self._wanted = threading.Event()
        self._latest = (0, self._whole)
        """The time of the latest link change, and the topology without the lost links."""
        near, self.far = socket.socketpair()
        """The shim's end of the channel."""
        self._shim = Channel(near)
        threading.Thread(target=self._attend, name="routing", daemon=True).start()
        if bridges:
            threading.Thread(target=self._keep_tables, name="tables", daemon=True).start()

    # ---- the shim's routes -------------------------------------------------

    def _attend(self) -> None:
        with suppress(EOFError):
            while True:
                self._take(self._shim.receive())

    def _take(self, message: Message) -> None:
        match message:
            case LinksChanged():
                self._answer(message)
            case Converging():
                self.links.converging(message)

    def _answer(self, change: LinksChanged) -> None:
        _, before = self._latest
        after = degraded(self._whole, frozenset(map(self._cable, change.down)))
        self.links.changed(change)
        self._latest = change.at_ps, after
        self._shim.send(Routes(change.at_ps, _changes(before, after)))
        self._wanted.set()

    def _cable(self, port: str) -> Cable:
        return self._whole.cable[self._whole.port_named[port]]

    # ---- Open vSwitch's tables ---------------------------------------------

    def _keep_tables(self) -> None:
        """Updates Open vSwitch's tables whenever links have changed. This takes some milliseconds a
        switch; link changes in the meantime are loaded together."""
        with suppress(EOFError):
            while self._wanted.wait():
                self._wanted.clear()
                at_ps, left = self._latest
                if self._load(left):
                    self._shim.send(RoutesLoaded(at_ps))

    def _load(self, left: Topology) -> bool:
        try:
            for name, before in self._tables.items():
                table = self._table(name, left)
                if lines := list(change_lines(before, table)):
                    ovs.load_lines(name, lines)
                self._tables[name] = table
        except EmuError as error:
            self.notes.append(
                f"Open vSwitch refused new routes; the shim chooses the ports: {error}"
            )
            return False
        return True

    def _table(self, switch: str, left: Topology) -> RouteTable:
        return route_table(self._spec, left, switch, self._ids[switch], hinted=True)


def _changes(before: Topology, after: Topology) -> dict[str, dict[str, tuple[int, ...]]]:
    """Switch -> host -> port numbers; only the routes that differ."""
    return {
        switch: {host: tuple(p.number for p in ports) for host, ports in changed.items()}
        for switch, changed in before.changed_hops(after)
    }
