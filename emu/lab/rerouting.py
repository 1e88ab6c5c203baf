"""Routing beside an Ethernet fabric that runs: links are lost and come back, and routes follow.

    shim                      lab (this file)                      Open vSwitch
     a link goes down
     LinksChanged ───────────▶ shortest paths of what is left
     switches follow ◀─ Routes ─┤
     Converging ─────────────▶  └───────── new groups, flows ─────▶ tables follow
     hints end ◀─ RoutesLoaded ───────────────────────────────────────┘

It is what BGP does in a real fabric, without its messages: `convergence` after a link has changed
a switch forwards accordingly, or as soon as the answer is there, where that is later. A run whose
faults are all in its spec needs none of this: its routes are known beforehand (`emu.spec.outages`).

Two threads do it as long as the lab lives: one answers the shim at once, the other loads tables.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from emu.errors import EmuError
from emu.lab import ovs
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.lab.ipc.routing import Converging, LinksChanged, Routes, RoutesLoaded
from emu.lab.link_history import LinkHistory
from emu.lab.routes import GroupIds, RouteTable, change_lines, route_table
from emu.spec.outages import changed_hops, degraded
from emu.spec.scenario import Spec
from topologies.graph import Cable, Topology


class LiveRouting:
    """The routes of a lab's fabric, from before the fabric runs on."""

    def __init__(self, spec: Spec, *, bridges: bool) -> None:
        """With `bridges` Open vSwitch forwards, by the tables of `route_tables(live=True)`."""
        self._spec = spec
        self._whole = spec.topology.build()
        self._ids: dict[str, GroupIds] = {switch: {} for switch in self._whole.switch}
        self._tables = {}
        if bridges:
            self._tables = {name: self._table(name, self._whole) for name in self._whole.switch}
        self.notes: list[str] = []
        """What its user should know."""
        self.links = LinkHistory()
        self._wanted = threading.Event()
        self._latest = (0, self._whole)
        """When links changed last, and what is left of the fabric."""
        near, self.far = socket.socketpair()
        """The shim's end of the line."""
        self._line = Channel(near)
        threading.Thread(target=self._attend, name="routing", daemon=True).start()
        if bridges:
            threading.Thread(target=self._keep_tables, name="tables", daemon=True).start()

    # ---- the shim asks -----------------------------------------------------

    def _attend(self) -> None:
        with suppress(EOFError):
            while True:
                self._take(self._line.receive())

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
        self._line.send(Routes(change.at_ps, _changes(before, after)))
        self._wanted.set()

    def _cable(self, port: str) -> Cable:
        return self._whole.cable[self._whole.port_named[port]]

    # ---- Open vSwitch follows ----------------------------------------------

    def _keep_tables(self) -> None:
        """Brings Open vSwitch's tables up to date whenever links have changed. It takes some
        milliseconds a switch; changes that come meanwhile are loaded together."""
        with suppress(EOFError):
            while self._wanted.wait():
                self._wanted.clear()
                at_ps, left = self._latest
                if self._load(left):
                    self._line.send(RoutesLoaded(at_ps))

    def _load(self, left: Topology) -> bool:
        try:
            for name, before in self._tables.items():
                table = self._table(name, left)
                if lines := list(change_lines(before, table)):
                    ovs.load_lines(name, lines)
                self._tables[name] = table
        except EmuError as error:
            self.notes.append(f"Open vSwitch did not take new routes, so the shim chooses: {error}")
            return False
        return True

    def _table(self, switch: str, left: Topology) -> RouteTable:
        return route_table(self._spec, left, switch, self._ids[switch], hinted=True)


def _changes(before: Topology, after: Topology) -> dict[str, dict[str, tuple[int, ...]]]:
    """Switch -> host -> port numbers, as far as they differ."""
    found = {}
    for switch, hops in after.next_hops.items():
        changed = changed_hops(before.next_hops[switch], hops)
        if changed:
            found[switch] = {
                host: tuple(p.number for p in ports) for host, ports in changed.items()
            }
    return found
