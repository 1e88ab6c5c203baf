"""Routes of a running Ethernet fabric: they follow links that are lost or come back.

    shim                      lab (this file)                      Open vSwitch
     a link goes down
     LinksChanged ───────────▶ what the control plane decides
     switches follow ◀─ Routes ─┤
     Converging ─────────────▶  └───────── new groups, flows ─────▶ tables follow
     hints end ◀─ RoutesLoaded ───────────────────────────────────────┘

Static routes are the shortest paths of what is left, without any protocol: switches use them
`convergence` after the links changed, or when the lab's answer arrives if that is later. BGP's are
those of FRR (emu.lab.frr.live_bgp). A run whose faults are all in its spec does not need this: its
routes are known beforehand (`emu.spec.rerouting`).

Two threads run as long as the lab: one answers the shim at once, the other loads tables.
"""

from __future__ import annotations

import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.lab.ipc.routing import (
    Converging,
    LinksChanged,
    NumbersByHost,
    Routes,
    RoutesLoaded,
    RouteStep,
    Unanswered,
)
from emu.lab.link_history import LinkHistory
from emu.lab.openflow_tables import OpenFlowTables
from emu.lab.routes import NextHops
from emu.spec.outages import degraded
from emu.spec.scenario import Spec
from topologies.graph import Cable, Port, Topology


class System(NamedTuple):
    """The operating system of a switch."""

    task: int
    """A process or thread in its namespaces."""
    places: dict[str, str]
    """What a program finds at other places: where -> what, in the order in which to mount them."""
    environment: dict[str, str]
    """Variables for programs."""


class CpuPorts(NamedTuple):
    """Where the shim exchanges packets with the operating systems of switches."""

    socket: socket.socket
    """For all interfaces."""
    interfaces: dict[str, int]
    """The name of each port of a switch -> the index of its interface."""


class LiveRouting(ABC):
    """The routes of a lab's fabric. It exists before the fabric starts."""

    def __init__(self, spec: Spec, *, bridges: bool) -> None:
        """`bridges`: whether Open vSwitch forwards, by the tables of `route_tables(live=True)`."""
        self.spec = spec
        self.whole = spec.topology.build()
        self.notes: list[str] = []
        """Notes for the lab's user."""
        self.links = LinkHistory()
        self.cpu_ports: CpuPorts | None = None
        """Where control planes exchange packets with the emulated switches, if they do."""
        near, self.far = socket.socketpair()
        """The shim's end of the channel."""
        self._shim = Channel(near)
        self._sending = threading.Lock()
        self._number = 0
        self._tables = OpenFlowTables(spec, self.notes, self._loaded) if bridges else None

    def attend(self) -> None:
        """Begins to answer the shim."""
        threading.Thread(target=self._attend, name="routing", daemon=True).start()

    @property
    def systems(self) -> Mapping[str, System]:
        """The operating systems of switches, for those that have one."""
        return {}

    def start(self) -> None:
        """Starts the control plane. The fabric runs."""
        return

    @abstractmethod
    def answer(self, change: LinksChanged) -> None:
        """Sends the routes that follow from a change of links, or `unanswered`."""

    def send(
        self,
        at_ps: int,
        changes: Mapping[str, NextHops],
        now: Mapping[str, NextHops],
        learned: Sequence[RouteStep] = (),
    ) -> None:
        """Sends new routes to the shim and to Open vSwitch. Any thread may call it.

        `changes`: in force `convergence` after the change of links at `at_ps`; `learned`: at their
        own times; `now`: all routes of the switches that change, in the end.
        """
        with self._sending:
            self._number += 1
            numbers = {switch: numbers_of(hops) for switch, hops in changes.items()}
            self._shim.send(Routes(self._number, at_ps, numbers, tuple(learned)))
            if self._tables is not None:
                self._tables.update(self._number, now)

    def unanswered(self, at_ps: int) -> None:
        """There will be no routes for the change of links at `at_ps`."""
        with self._sending:
            self._shim.send(Unanswered(at_ps))

    def cables(self, change: LinksChanged) -> frozenset[Cable]:
        """The cables that have no link."""
        return frozenset(self.whole.cable[self.whole.port_named[port]] for port in change.down)

    def _attend(self) -> None:
        with suppress(EOFError):
            while True:
                self._take(self._shim.receive())

    def _take(self, message: Message) -> None:
        match message:
            case LinksChanged():
                self.links.changed(message)
                self.answer(message)
            case Converging():
                self.links.converging(message)

    def _loaded(self, number: int) -> None:
        with self._sending:
            self._shim.send(RoutesLoaded(number))


class StaticRouting(LiveRouting):
    """The shortest paths of what is left."""

    def __init__(self, spec: Spec, *, bridges: bool) -> None:
        super().__init__(spec, bridges=bridges)
        self._left: Topology = self.whole

    def answer(self, change: LinksChanged) -> None:
        before, self._left = self._left, degraded(self.whole, self.cables(change))
        changes = dict(before.changed_hops(self._left))
        now = {switch: self._left.hops_of(switch, self._left.host) for switch in changes}
        self.send(change.at_ps, changes, now)


def numbers_of(hops: Mapping[str, tuple[Port, ...]]) -> NumbersByHost:
    """The same hops by the ports' numbers."""
    return {host: tuple(port.number for port in ports) for host, ports in hops.items()}
