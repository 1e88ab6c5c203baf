"""The routes of a switch in the core, from the start and after link changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emu._core import ffi, lib
from emu.bindings.source_ports import source_ports
from emu.errors import FabricError
from emu.spec.outages import Rerouting, degraded, outages
from emu.spec.pinning import pins_of
from emu.spec.routing import PACKET_KINDS
from emu.spec.scenario import Spec
from emu.subnet.subnet import Lfts, Subnet
from topologies.graph import Cable, Port, Switch, Topology


class IpRoutes:
    """An Ethernet switch's routes to every host, and its pinned flows."""

    def __init__(
        self,
        core: Any,
        spec: Spec,
        topology: Topology,
        switch: Switch,
        changes: Sequence[Rerouting],
    ) -> None:
        """`core` is a switch without routes; `changes` are the changes known in advance."""
        self._core = core
        self._topology = topology
        self._routing = spec.switch(switch.name).routing
        self._add_routes(switch.name)
        for change in changes:
            later = {host: _numbers(hops) for host, hops in change.changes.items()}
            self._change(change.at_ps, later)
        for pin in pins_of(spec, switch.name, source_ports):
            ends = self._address(pin.src), self._address(pin.dst)
            _have_memory(lib.switch_pin_flow(core, *ends, pin.udp_source, pin.port.number))

    def _add_routes(self, switch: str) -> None:
        """Adds the routes to all hosts with the same next hops together."""
        topology = self._topology
        leaf_of, addresses = topology.leaf_of_host
        own = topology.next_hops_of(switch)
        list_of = own.of_leaf[leaf_of]
        order = np.argsort(list_of, kind="stable")
        ends = np.cumsum(np.bincount(list_of, minlength=len(own.lists)))
        for number, hops in enumerate(own.lists[1:], 1):
            self._add(addresses[order[ends[number - 1] : ends[number]]], hops)
        for host in topology.leaves.get(switch, ()):
            self._add(np.array([self._address(host)], np.uint16), topology.hops(switch, host))

    def _add(self, addresses: NDArray[np.uint16], hops: Sequence[Port]) -> None:
        to, by = ffi.from_buffer("uint16_t[]", addresses), _numbers(hops)
        _have_memory(lib.switch_add_routes(self._core, to, len(to), by, len(by)))

    def follow(self, changes: Mapping[str, Sequence[int]], cause_ps: int, now_ps: int) -> int:
        """Changes routes (host -> port numbers) in a running switch, because links changed at
        `cause_ps`. Returns when they are in force, in picoseconds."""
        at_ps = max(cause_ps + self._routing.convergence_ps, now_ps)
        self.change(changes, at_ps)
        return at_ps

    def change(self, changes: Mapping[str, Sequence[int]], at_ps: int) -> None:
        """The same, in force from `at_ps` on, which has not passed."""
        self._change(at_ps, changes)
        lib.switch_routes_added(self._core)

    def _change(self, at_ps: int, changes: Mapping[str, Sequence[int]]) -> None:
        numbers = {self._address(host): ports for host, ports in changes.items()}
        _add_later(self._core, at_ps, numbers)

    def _address(self, host: str) -> int:
        """The low 16 bits of the host's address, which identify it in the core."""
        return self._topology.addresses[host]


class LidRoutes:
    """The LFT of an InfiniBand switch, and all shortest paths, for packets that may take any.

    Later tables of the subnet manager are in force `convergence` after their cause, or at once if
    they arrive later than that.
    """

    def __init__(
        self, core: Any, spec: Spec, topology: Topology, switch: Switch, subnet: Subnet
    ) -> None:
        """`core` is a switch without routes."""
        self._core = core
        self._topology = topology
        self._switch = switch
        self._lids, self._lmc = subnet.lids, subnet.lmc
        self._routing = spec.switch(switch.name).routing
        self._now = self._routes(topology, subnet.lfts)
        for numbers, lids in _alike(self._now).items():
            _have_memory(lib.switch_add_routes(core, lids, len(lids), numbers, len(numbers)))
        for (at_ps, down), later in zip(outages(spec), subnet.later, strict=False):
            self._change(at_ps + self._routing.convergence_ps, down, later.lfts)

    def follow(self, lfts: Lfts, down: frozenset[Cable], cause_ps: int, now_ps: int) -> int:
        """Changes the tables of a running switch. Returns when they are in force, in picoseconds.

        `down`: the cables that were lost by `cause_ps`, for which the tables were computed.
        """
        at_ps = max(cause_ps + self._routing.convergence_ps, now_ps)
        if self._change(at_ps, down, lfts):
            lib.switch_routes_added(self._core)
        return at_ps

    def _change(self, at_ps: int, down: frozenset[Cable], lfts: Lfts) -> bool:
        """Adds the routes that differ from `at_ps` on. False if none do."""
        before, self._now = self._now, self._routes(degraded(self._topology, down), lfts)
        changes = {
            lid: self._now.get(lid, [])
            for lid in before | self._now
            if before.get(lid) != self._now.get(lid)
        }
        _add_later(self._core, at_ps, changes)
        return bool(changes)

    def _routes(self, topology: Topology, lfts: Lfts) -> dict[int, list[int]]:
        """LID -> the port of the LFT, unless the LID is the switch's own; if packets are balanced
        one by one, also all ports on a shortest path."""
        lft = lfts[self._switch.name]
        routes = {lid: [number] if number else [] for lid, number in lft.items()}
        if self._routing.kind in PACKET_KINDS:
            for host, hops in topology.hops_of(self._switch.name, topology.host).items():
                for lid in range(self._lids[host], self._lids[host] + (1 << self._lmc)):
                    if routes.get(lid):
                        routes[lid] += [port.number for port in hops]
        return routes


def _alike(routes: Mapping[int, Sequence[int]]) -> dict[tuple[int, ...], list[int]]:
    """List of ports -> its destinations, so that the core searches for each list only once."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for destination, numbers in routes.items():
        groups.setdefault(tuple(numbers), []).append(destination)
    return groups


def _add_later(core: Any, at_ps: int, routes: Mapping[int, Sequence[int]]) -> None:
    """Adds routes (destination -> port numbers) from `at_ps` on."""
    for ports, to in _alike(routes).items():
        _have_memory(lib.switch_add_routes_later(core, at_ps, to, len(to), ports, len(ports)))


def _numbers(hops: Sequence[Port]) -> list[int]:
    """The port numbers of next hops, as the core needs them."""
    return [port.number for port in hops]


def _have_memory(done: bool) -> None:
    if not done:
        raise FabricError("there is no memory for the routes; make the fabric smaller")
