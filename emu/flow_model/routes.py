"""The ports that each flow's packets leave by, by the hashes and tables of the packet model.

All flows are followed at once, switch by switch. A row is a flow (or, where every switch spreads
packets one by one, a pair of leaves), a switch, and the share of the flow's packets that reaches
it:

    at leaf1   f1 1      f2 1
    at spines  f1 1      f2 1/2  f2 1/2      leaf1 hashes f1, and spreads the packets of f2
    at leaf2   f1 1      f2 1

A hash depends on the addresses and the UDP source port of a flow, and with `ecmp-qp` on its
destination queue pair. Packets that are spread one by one reach all equal ports alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emu._core import ffi, lib
from emu.bindings.source_ports import queue_pair_columns, source_ports
from emu.errors import FabricError
from emu.spec.pinning import pins_of
from emu.spec.routing import PACKET_KINDS
from emu.spec.scenario import Spec
from emu.subnet.subnet import Subnet
from topologies.graph import Topology
from topologies.seeds import ecmp_seed
from traffic.graph import Flow, OperationGraph
from traffic.verb import Verb

Column = NDArray[np.int64]
Shares = NDArray[np.float64]

_LONGEST = 64
"""More switches than any path has. A path that is longer is a loop."""

_BY_DIRECTION = (
    "_first_switch",
    "_last_switch",
    "_last_leaf",
    "_dlid",
    "_level",
    "_spreads_everything",
    "_addresses",
)
"""What `Routes` knows of one direction alone."""


@dataclass(frozen=True)
class Hops:
    """Rows of ports between the first and the last switch of routes, in order of hops."""

    of: Column
    """The number of the route of each row."""
    port: Column
    """The number of its port, as in `Routes.ports`."""
    share: Shares
    """The share of the route's packets that leave by this port."""
    hop: Column
    """0 for the ports of the first switch, 1 for those of the next, ..."""
    route_of_flow: Column
    """The number of each flow's route."""
    count: int
    """The number of routes."""


class Routes:
    """The routes of flows through a fabric."""

    def __init__(
        self,
        spec: Spec,
        topology: Topology,
        graph: OperationGraph,
        flows: Column,
        subnet: Subnet | None,
    ) -> None:
        """`flows`: the numbers of those that cross the fabric, in order. `subnet`: for InfiniBand
        alone."""
        self._spec = spec
        self._topology = topology
        self._graph = graph
        self._flows = flows
        self._backwards = False
        self._subnet = subnet
        self.ports = tuple(port for node in topology.nodes for port in topology.ports[node.name])
        self._number = {port: number for number, port in enumerate(self.ports)}
        self._switches = [switch.name for switch in topology.switches]
        self._place = {name: place for place, name in enumerate(self._switches)}
        far = [self._place.get(topology.peer[port].node, -1) for port in self.ports]
        self._switch_after = np.array(far, np.int64)

    def backwards(self) -> Routes:
        """The routes of what these flows cause in the other direction: acknowledgements."""
        result = copy(self)
        result._backwards = not self._backwards
        for name in _BY_DIRECTION:
            result.__dict__.pop(name, None)
        return result

    def between_leaves(self) -> Hops:
        """The ports by which switches send to other switches. Raises FabricError: no route."""
        of_flow = self._rows_of_flows()
        if not self._spreads_everything:
            return self._followed(of_flow, np.arange(len(self._flows)))
        pairs, first, of = np.unique(
            self._first_switch * len(self._switches) + self._last_switch,
            return_index=True,
            return_inverse=True,
        )
        return self._followed(of_flow[first], of.reshape(-1)) if len(pairs) else self._nothing()

    def out_of(self, host: str) -> int:
        """The number of the port by which a host sends."""
        return self._number[self._topology.ports[host][0]]

    def into(self, host: str) -> int:
        """The number of the port by which its switch sends to a host."""
        return self._number[self._topology.peer[self._topology.ports[host][0]]]

    # ---- following -------------------------------------------------------------------

    def _flow(self, place: int) -> Flow:
        return self._graph.flows[int(self._flows[place])]

    def _nothing(self) -> Hops:
        none = np.zeros(0, np.int64)
        return Hops(none, none, np.zeros(0), none, none, 0)

    def _rows_of_flows(self) -> Column:
        return np.arange(len(self._flows))

    def _followed(self, flows: Column, route_of_flow: Column) -> Hops:
        """Follows the packets of these flows, one for each route."""
        of, at = np.arange(len(flows)), self._first_switch[flows]
        share = np.ones(len(flows))
        found: list[tuple[Column, Column, Shares, Column]] = []
        for hop in range(_LONGEST):
            onward = at != self._last_switch[flows[of]]
            of, at, share = of[onward], at[onward], share[onward]
            if not len(of):
                return _joined(found, route_of_flow, len(flows))
            of, port, share = self._sent_on(flows, of, at, share)
            found.append((of, port, share, np.full(len(of), hop)))
            of, at, share = _merged(of, self._switch_after[port], share)
        flow = self._flow(int(flows[of[0]]))
        raise FabricError(f"the route from {flow.src} to {flow.dst} is a loop")

    def _sent_on(
        self, flows: Column, of: Column, at: Column, share: Shares
    ) -> tuple[Column, Column, Shares]:
        """The ports by which packets leave the switches that they are `at`, a row each."""
        group = self._groups_at(flows[of], at)
        rows: list[tuple[Column, Column, Shares]] = []
        order = np.argsort(group, kind="stable")
        groups, first = np.unique(group[order], return_index=True)
        for number, own in zip(groups.tolist(), np.split(order, first[1:]), strict=True):
            ports, is_spread = self._group(number)
            if not ports:
                flow = self._flow(int(flows[of[own[0]]]))
                raise FabricError(f"there is no route from {flow.src} to {flow.dst}")
            if len(ports) == 1:
                chosen = np.full(len(own), ports[0])
            elif is_spread:
                own = np.repeat(own, len(ports))
                chosen = np.tile(np.array(ports), len(own) // len(ports))
            else:
                chosen = self._hashed(int(at[own[0]]), ports, flows[of[own]])
            rows.append((of[own], chosen, share[own] / (len(ports) if is_spread else 1)))
        ofs, chosens, shares = zip(*rows, strict=True)
        return np.concatenate(ofs), np.concatenate(chosens), np.concatenate(shares)

    # ---- next hops -------------------------------------------------------------------

    def _groups_at(self, flows: Column, at: Column) -> Column:
        """The number of the group of next hops that each packet has at its switch."""
        if self._subnet is None:
            return self._by_leaf[at, self._last_leaf[flows]]
        spread = self._is_balanced[at, self._level[flows]]
        return np.where(
            spread,
            self._by_leaf[at, self._last_leaf[flows]],
            self._by_lid[at, self._dlid[flows]],
        )

    def _group(self, number: int) -> tuple[tuple[int, ...], bool]:
        """The ports of a group, and whether packets are spread over them one by one."""
        return self._known_groups[number]

    @cached_property
    def _known_groups(self) -> list[tuple[tuple[int, ...], bool]]:
        return []

    @cached_property
    def _numbers_of_groups(self) -> dict[tuple[tuple[int, ...], bool], int]:
        return {}

    def _numbered(self, ports: tuple[int, ...], is_spread: bool) -> int:
        key = (ports, is_spread and len(ports) > 1)
        if key not in self._numbers_of_groups:
            self._numbers_of_groups[key] = len(self._known_groups)
            self._known_groups.append(key)
        return self._numbers_of_groups[key]

    @cached_property
    def _by_leaf(self) -> Column:
        """(switch, leaf): the group of ports on shortest paths."""
        table = np.zeros((len(self._switches), len(self._topology.leaves)), np.int64)
        for place, switch in enumerate(self._switches):
            hops = self._topology.next_hops_of(switch)
            is_spread = self._spreads(switch) if self._subnet is None else True
            groups = [
                self._numbered(tuple(self._number[port] for port in ports), is_spread)
                for ports in hops.lists
            ]
            table[place] = np.array(groups)[hops.of_leaf]
        return table

    @cached_property
    def _by_lid(self) -> Column:
        """(switch, LID): the port of the LFT, as a group."""
        assert self._subnet is not None
        lids = 1 + max(lid for lft in self._subnet.lfts.values() for lid in lft)
        table = np.full((len(self._switches), lids), self._numbered((), False))
        for switch, lft in self._subnet.lfts.items():
            by_number = {port.number: port for port in self._topology.ports[switch]}
            groups = {
                number: self._numbered((self._number[port],), False)
                for number, port in by_number.items()
            }
            for lid, number in lft.items():
                if number in groups:
                    table[self._place[switch], lid] = groups[number]
        return table

    def _spreads(self, switch: str) -> bool:
        return self._spec.switch(switch).routing.kind in PACKET_KINDS

    @cached_property
    def _is_balanced(self) -> NDArray[np.bool_]:
        """(switch, service level): whether packets are spread one by one."""
        return np.array(
            [
                [self._spec.switch(name).routing.balances(sl) for sl in range(16)]
                for name in self._switches
            ],
            bool,
        )

    @cached_property
    def _spreads_everything(self) -> bool:
        """Whether no route depends on more than the leaves of its hosts."""
        if self._subnet is None:
            return all(map(self._spreads, self._switches))
        return bool(self._is_balanced[:, np.unique(self._level)].all())

    # ---- flows -----------------------------------------------------------------------

    @property
    def _from(self) -> Column:
        columns = self._graph.columns
        return (columns.bytes_to if self._backwards else columns.bytes_from)[self._flows]

    @property
    def _to(self) -> Column:
        columns = self._graph.columns
        return (columns.bytes_from if self._backwards else columns.bytes_to)[self._flows]

    def _leaf_of(self, hosts: Column) -> Column:
        topology = self._topology
        return self._graph.columns.of_hosts(
            lambda host: (
                self._place[topology.peer[topology.ports[host][0]].node]
                if host in topology.host
                else -1
            ),
            hosts,
            np.int64,
        )

    @cached_property
    def _first_switch(self) -> Column:
        return self._leaf_of(self._from)

    @cached_property
    def _last_switch(self) -> Column:
        return self._leaf_of(self._to)

    @cached_property
    def _last_leaf(self) -> Column:
        """The number of each flow's last switch among the leaves."""
        number = np.full(len(self._switches), -1)
        for leaf, place in self._topology.leaf_number.items():
            number[self._place[leaf]] = place
        return number[self._last_switch]

    @cached_property
    def _dlid(self) -> Column:
        """The paths of a host's LIDs are taken in turn by the flows that send messages."""
        assert self._subnet is not None
        lids, paths = self._subnet.lids, 1 << self._subnet.lmc
        sends = self._graph.columns.where(lambda verb: verb is not Verb.COMPUTE)
        place = (np.cumsum(sends) - 1)[self._flows]
        lid: Column = self._graph.columns.of_hosts(
            lambda host: lids.get(host, 0), self._to, np.int64
        )
        return lid + place % paths

    @cached_property
    def _level(self) -> Column:
        """The service level of each flow's packets."""
        assert self._subnet is not None
        levels, hosts = self._subnet.levels, self._graph.columns.hosts
        own = {host: self._spec.host(host).nic.sl for host in self._topology.host}
        ends = zip(self._flows.tolist(), self._from.tolist(), self._to.tolist(), strict=True)
        result = []
        for flow, start, end in ends:
            priority = self._graph.flows[flow].priority
            level = own[hosts[start]] if priority is None else priority
            result.append(levels.get(hosts[start], {}).get(hosts[end], level))
        return np.array(result, np.int64)

    @cached_property
    def _addresses(self) -> tuple[Any, Any, Any, Any]:
        """Source and destination address, UDP source port and destination queue pair."""
        addresses, columns = self._topology.addresses, self._graph.columns
        at_src, at_dst = queue_pair_columns(columns, self._flows)
        qpns = np.where(self._to == columns.dst[self._flows], at_dst, at_src)
        source, destination = (
            columns.of_hosts(lambda host: addresses.get(host, 0), hosts, np.uint16)
            for hosts in (self._from, self._to)
        )
        ports = np.zeros(len(self._flows), np.uint16)
        lib.flow_model_source_ports(
            ffi.from_buffer("uint32_t[]", at_src.astype(np.uint32)),
            ffi.from_buffer("uint32_t[]", at_dst.astype(np.uint32)),
            len(ports),
            ffi.from_buffer("uint16_t[]", ports),
        )
        return source, destination, ports, qpns.astype(np.uint32)

    def _hashed(self, switch: int, ports: tuple[int, ...], flows: Column) -> Column:
        """The ports that a switch's hash chooses for these flows."""
        name = self._switches[switch]
        routing = self._spec.switch(name).routing
        seed = ecmp_seed(routing.seed_of(self._spec.seed), self._topology.switch[name])
        sources, destinations, udp_sources, qpns = (own[flows] for own in self._addresses)
        numbers = np.array([self.ports[port].number for port in ports], np.uint16)
        chosen = np.zeros(len(flows), np.uint16)
        lib.flow_model_ecmp(
            seed,
            ffi.from_buffer("uint16_t[]", sources),
            ffi.from_buffer("uint16_t[]", destinations),
            ffi.from_buffer("uint16_t[]", udp_sources),
            ffi.from_buffer("uint32_t[]", qpns) if routing.kind == "ecmp-qp" else ffi.NULL,
            len(flows),
            ffi.from_buffer("uint16_t[]", numbers),
            len(numbers),
            ffi.from_buffer("uint16_t[]", chosen),
        )
        result = np.array(ports, np.int64)[np.searchsorted(numbers, chosen)]
        return self._pinned(name, flows, result) if routing.kind == "pinned" else result

    def _pinned(self, switch: str, flows: Column, chosen: Column) -> Column:
        """The chosen ports, but for pinned flows those of their pins."""
        pins = {
            (pin.src, pin.dst, pin.udp_source): self._number[pin.port]
            for pin in pins_of(self._spec, switch, source_ports)
        }
        sources = self._addresses[2]
        for place, number in enumerate(flows.tolist()):
            flow = self._flow(number)
            ends = (flow.bytes_from, flow.bytes_to)
            key = (*(reversed(ends) if self._backwards else ends), int(sources[number]))
            chosen[place] = pins.get(key, int(chosen[place]))
        return chosen


def _merged(of: Column, at: Column, share: Shares) -> tuple[Column, Column, Shares]:
    """One row for each route and switch."""
    width = int(at.max(initial=0)) + 1
    keys, place = np.unique(of * width + at, return_inverse=True)
    if len(keys) == len(of):
        return of, at, share
    summed: Shares = np.bincount(place.reshape(-1), share).astype(np.float64)
    return keys // width, keys % width, summed


def _joined(
    found: Sequence[tuple[Column, Column, Shares, Column]], route_of_flow: Column, count: int
) -> Hops:
    none = np.zeros(0, np.int64)
    of, port, share, hop = (
        np.concatenate([start, *(rows[part] for rows in found)])
        for part, start in enumerate((none, none, np.zeros(0), none))
    )
    order = np.lexsort((port, hop, of))
    return Hops(of[order], port[order], share[order], hop[order], route_of_flow, count)
