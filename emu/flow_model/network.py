"""The links of a workload and the routes of its flows, in the form that the core needs.

A link is one direction of a cable, named by its sending port; the links inside servers come after
those of the network. A host with a `path` between NIC and memory has two more, one in each
direction, which carry payload only.

Links that every route uses in the same proportion are equal for this purpose: of the ports over
which a switch spreads packets one by one, one stands for all. A route is stored once for all flows
that take it. Its other half are the links that acknowledgements and flow-control packets cross, and
how many bytes of them for each byte of data (emu/flow_model/reverse.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from emu.flow_model.reverse import reverse_shares
from emu.flow_model.routes import Column, Hops, Routes, Shares
from emu.measure.bound import INFINIBAND, Fabric, Paths, fabric_of
from emu.spec.host import Nic
from emu.spec.scenario import Spec
from emu.subnet.subnet import Subnet
from emu.units import PS_PER_S
from topologies.graph import Port, Topology
from traffic.graph import OperationGraph
from traffic.verb import Verb

_Rows = tuple[Column, Column, Shares]
"""Flows, links, shares."""
_Words = NDArray[np.uint64]

NO_ROUTE = -1
_UNLIMITED = 1e6
"""Bytes per picosecond, of messages from a host to itself: no link carries them."""
_RANDOM = 0x5EED
"""Seed of the numbers by which equal links and routes are found."""


@dataclass(frozen=True)
class Way:
    """The ports of a path, of which many routes have equal ones, and what it is made of."""

    paths: Paths
    there: tuple[Port, ...]
    """The sending ports from the host with the bytes to the other host."""
    back: tuple[Port, ...]
    """And from there back."""


@dataclass(frozen=True)
class Network:
    """Links and routes. Capacities in bytes per picosecond."""

    capacity: Shares
    first: Column
    """Route r has the entries first[r] to first[r + 1] - 1."""
    link: Column
    share: Shares
    """Of the bytes of each stream."""
    reverse_first: Column
    """The same of what it causes in the other direction."""
    reverse_link: Column
    reverse_share: Shares
    """Bytes there for each byte of a stream."""
    route_of_flow: Column
    """Of each flow of the workload; NO_ROUTE: it is work."""
    way_of_flow: Column
    """The number of each flow's way; -1: it needs none."""
    ways: tuple[Way, ...]
    ports: tuple[str, ...]
    """The names of the network's ports."""
    link_of_port: Column
    """The link that stands for each port; -1: nothing crosses it."""
    near: Column
    """Of each link of the fabric: the number of the node that sends there, as in `nodes`; -1: it is
    none of the fabric's."""
    far: Column
    """And of the node at its other end."""
    nodes: tuple[str, ...]


def network_of(
    spec: Spec, topology: Topology, graph: OperationGraph, subnet: Subnet | None
) -> Network:
    """The network of a workload. Raises FabricError for a flow without a route."""
    return _Builder(spec, topology, graph, subnet).network()


class _Builder:
    """Rows of (flow, link, share), one part of the routes after another, in both directions."""

    def __init__(
        self, spec: Spec, topology: Topology, graph: OperationGraph, subnet: Subnet | None
    ) -> None:
        self._spec, self._topology, self._graph = spec, topology, graph
        self._subnet = subnet
        self._inside = spec.scale_up
        self._switch_inside: dict[str, int] = {}
        self._ports: tuple[Port, ...] = ()
        self._capacity: list[Shares] = []
        self._links = 0
        self._rows: list[_Rows] = []
        self._reverse: list[_Rows] = []
        self._ways: list[Way] = []
        self._way_of_flow = np.full(len(graph.flows), -1)

    def network(self) -> Network:
        fabric, inside, within = self._sorted_flows()
        ports, stands_for = self._cross_fabric(fabric)
        self._cross_servers(inside)
        self._stay_within(within)
        self._limit_by_paths(fabric)
        forward, reverse, route_of_flow = self._routes()
        used = np.zeros(self._links, bool)
        used[forward.link] = used[reverse.link] = True
        own = np.arange(len(ports))
        standing = np.where(stands_for >= 0, stands_for, own)
        return Network(
            capacity=np.concatenate(self._capacity),
            first=forward.first,
            link=forward.link,
            share=forward.share,
            reverse_first=reverse.first,
            reverse_link=reverse.link,
            reverse_share=reverse.share,
            route_of_flow=route_of_flow,
            way_of_flow=self._way_of_flow,
            ways=tuple(self._ways),
            ports=tuple(ports),
            link_of_port=np.where(used[standing], standing, -1),
            near=self._ends(lambda port: port),
            far=self._ends(self._topology.peer.__getitem__),
            nodes=tuple(node.name for node in self._topology.nodes),
        )

    def _ends(self, end: Callable[[Port], Port]) -> Column:
        """The number of the node of one end of each link."""
        number = {node.name: place for place, node in enumerate(self._topology.nodes)}
        ends = np.full(self._links, -1)
        own = [number[end(port).node] for port in self._ports]
        ends[: len(own)] = own
        return ends

    def _sorted_flows(self) -> tuple[Column, Column, Column]:
        """The numbers of the flows over the fabric, inside servers, and from a host to itself."""
        columns = self._graph.columns
        server = columns.of_hosts(self._server_of, columns.src, np.int64)
        other = columns.of_hosts(self._server_of, columns.dst, np.int64)
        sends = columns.where(lambda verb: verb is not Verb.COMPUTE)
        within = sends & (columns.src == columns.dst)
        inside = sends & (server == other) & (server >= 0) & ~within
        return (
            np.flatnonzero(sends & ~within & ~inside),
            np.flatnonzero(inside),
            np.flatnonzero(within),
        )

    def _server_of(self, host: str) -> int:
        """A number for the server of a host; -1: it is alone."""
        if self._inside is None:
            return -1
        return self._switch_inside.setdefault(
            self._inside.peer[self._inside.ports[host][0]].node, len(self._switch_inside)
        )

    def _add_links(self, rates_bps: Sequence[int]) -> int:
        """Adds links with these rates. Returns the number of the first."""
        self._capacity.append(np.array(rates_bps, np.float64) / (8 * PS_PER_S))
        self._links += len(rates_bps)
        return self._links - len(rates_bps)

    # ---- the fabric ------------------------------------------------------------------

    def _cross_fabric(self, numbers: Column) -> tuple[list[str], Column]:
        """Adds the fabric's links and rows. Returns the ports, and for each the link that stands
        for it; -1: itself."""
        topology, columns = self._topology, self._graph.columns
        routes = Routes(self._spec, topology, self._graph, numbers, self._subnet)
        self._ports = routes.ports
        rates = [topology.cable[port].rate_bps for port in routes.ports]
        self._add_links(rates)
        hops, back = routes.between_leaves(), routes.backwards().between_leaves()
        start, end = columns.bytes_from[numbers], columns.bytes_to[numbers]
        out, out_back = (columns.of_hosts(routes.out_of, own, np.int64) for own in (start, end))
        into, into_back = (columns.of_hosts(routes.into, own, np.int64) for own in (end, start))
        self._add_ways(routes, hops, numbers, out, into)
        number = {port: place for place, port in enumerate(routes.ports)}
        peer = np.array([number[topology.peer[port]] for port in routes.ports], np.int64)
        credits = replace(hops, port=peer[hops.port])
        stands_for = _standing_for([hops, back, credits], np.array(rates))
        hops, back, credits = (_without(own, stands_for) for own in (hops, back, credits))
        ones = np.ones(len(numbers))
        self._rows += [(numbers, out, ones), (numbers, into, ones), _spread_out(hops, numbers)]
        shares = reverse_shares(self._spec, topology, self._graph, numbers, inside=False)
        for links in (out_back, into_back):
            self._add_reverse(numbers, shares.answers, (numbers, links, ones))
        self._add_reverse(numbers, shares.answers, _spread_out(back, numbers))
        for links in (peer[out], peer[into]):
            self._add_reverse(numbers, shares.credits, (numbers, links, ones))
        self._add_reverse(numbers, shares.credits, _spread_out(credits, numbers))
        return [topology.port_name[port] for port in routes.ports], stands_for

    def _add_ways(
        self, routes: Routes, hops: Hops, numbers: Column, out: Column, into: Column
    ) -> None:
        """Gives each flow its way. Flows whose ports are alike have the same."""
        if not len(numbers):
            return
        alike = self._alike(routes.ports)
        is_first = np.ones(len(hops.of), bool)
        is_first[1:] = (np.diff(hops.of) != 0) | (np.diff(hops.hop) != 0)
        of, hop, port = hops.of[is_first], hops.hop[is_first], hops.port[is_first]
        longest = int(hop.max(initial=-1)) + 1
        matrix = np.full((hops.count, longest), -1)
        matrix[of, hop] = port
        kinds = np.where(matrix >= 0, alike[matrix], -1)
        _, kind = np.unique(kinds, axis=0, return_inverse=True)
        key = kind.reshape(-1)[hops.route_of_flow] if hops.count else np.zeros(len(numbers), int)
        width = int(alike.max()) + 1
        key = (key * width + alike[out]) * width + alike[into]
        _, first, way = np.unique(key, return_index=True, return_inverse=True)
        paths = Paths(self._topology, fabric_of(self._spec, self._topology))
        self._way_of_flow[numbers] = len(self._ways) + way.reshape(-1)
        for place in first.tolist():
            middle = matrix[hops.route_of_flow[place]] if hops.count else matrix[:0].reshape(-1)
            chosen = [out[place], *middle[middle >= 0].tolist(), into[place]]
            there = tuple(routes.ports[number] for number in chosen)
            back = tuple(self._topology.peer[port] for port in reversed(there))
            self._ways.append(Way(paths, there, back))

    def _alike(self, ports: Sequence[Port]) -> Column:
        """A number for each port; ports whose cables, and whose far switches, are alike have the
        same."""
        topology, spec = self._topology, self._spec
        of_switch = {
            name: (spec.switch(name).latency_ps, spec.cuts_through(name))
            for name in topology.switch
        }
        numbers: dict[object, int] = {}
        result = []
        for port in ports:
            cable = topology.cable[port]
            far = of_switch.get(topology.peer[port].node)
            key = (cable.rate_bps, cable.delay_ps, far, port.node in topology.host)
            result.append(numbers.setdefault(key, len(numbers)))
        return np.array(result, np.int64)

    def _add_reverse(self, numbers: Column, shares: Shares, rows: _Rows) -> None:
        """Adds rows of what flows cause in the other direction: these shares of their data."""
        of_flow = np.zeros(len(self._graph.flows))
        of_flow[numbers] = shares
        flow, link, share = rows
        caused = of_flow[flow] > 0
        self._reverse.append((flow[caused], link[caused], (share * of_flow[flow])[caused]))

    # ---- the rest --------------------------------------------------------------------

    def _cross_servers(self, numbers: Column) -> None:
        """Adds the links inside servers and their rows."""
        inside = self._inside
        if inside is None:
            return
        ports = [port for node in inside.nodes for port in inside.ports[node.name]]
        start = self._add_links([inside.cable[port].rate_bps for port in ports])
        number = {port: start + place for place, port in enumerate(ports)}
        flows = [self._graph.flows[own] for own in numbers.tolist()]
        out = np.array([number[inside.ports[flow.bytes_from][0]] for flow in flows], np.int64)
        into = np.array(
            [number[inside.peer[inside.ports[flow.bytes_to][0]]] for flow in flows], np.int64
        )
        ones = np.ones(len(numbers))
        self._rows += [(numbers, out, ones), (numbers, into, ones)]
        if flows:
            out_back = [number[inside.ports[flow.bytes_to][0]] for flow in flows]
            into_back = [number[inside.peer[inside.ports[flow.bytes_from][0]]] for flow in flows]
            shares = reverse_shares(self._spec, self._topology, self._graph, numbers, inside=True)
            for links in (out_back, into_back):
                self._add_reverse(numbers, shares.answers, (numbers, np.array(links), ones))
            self._way_of_flow[numbers] = len(self._ways)
            there = (ports[int(out[0]) - start], ports[int(into[0]) - start])
            back = tuple(inside.peer[port] for port in reversed(there))
            self._ways.append(Way(Paths(inside, _inside_servers(self._spec, inside)), there, back))

    def _stay_within(self, numbers: Column) -> None:
        """Adds the rows of messages from a host to itself."""
        if len(numbers):
            link = self._add_links([1])
            self._capacity[-1][:] = _UNLIMITED
            self._rows.append((numbers, np.full(len(numbers), link), np.ones(len(numbers))))

    def _limit_by_paths(self, numbers: Column) -> None:
        """Adds the rows of the paths between NICs and memory."""
        spec, out, into = self._spec, {}, {}
        for host in self._topology.host:
            path = spec.host(host).path
            if path is not None:
                out[host] = self._add_links([path.rate_bps, path.rate_bps])
                into[host] = out[host] + 1
        if not out:
            return
        for number in numbers.tolist():
            flow = self._graph.flows[number]
            for host, links in ((flow.bytes_from, out), (flow.bytes_to, into)):
                if host in links:
                    share = np.array([self._payload_share(flow.bytes_from)])
                    self._rows.append((np.array([number]), np.array([links[host]]), share))

    def _payload_share(self, host: str) -> float:
        """The share of a full packet on a cable that is payload."""
        nic = self._spec.host(host).nic
        each = fabric_of(self._spec, self._topology).overhead.each
        return nic.mtu / (nic.mtu + each)

    # ---- routes ----------------------------------------------------------------------

    def _routes(self) -> tuple[_Table, _Table, Column]:
        """The routes, each once, in both directions, and the number of each flow's."""
        forward, reverse = _Sorted(self._rows, self._graph), _Sorted(self._reverse, self._graph)
        route_of_flow = np.full(len(self._graph.flows), NO_ROUTE)
        flows = np.flatnonzero(forward.count)
        random = _random(2 * self._links)
        signature = forward.signature(random) + reverse.signature(random[self._links :])
        _, chosen, route = np.unique(signature[flows], return_index=True, return_inverse=True)
        route_of_flow[flows] = route.reshape(-1)
        return forward.table(flows[chosen]), reverse.table(flows[chosen]), route_of_flow


@dataclass(frozen=True)
class _Table:
    """Row r has the entries first[r] to first[r + 1] - 1."""

    first: Column
    link: Column
    share: Shares


class _Sorted:
    """Rows in order of flows and links."""

    def __init__(self, rows: Sequence[_Rows], graph: OperationGraph) -> None:
        none = np.zeros(0, np.int64)
        flow, link = (np.concatenate([none, *(row[part] for row in rows)]) for part in (0, 1))
        share = np.concatenate([np.zeros(0), *(row[2] for row in rows)])
        order = np.lexsort((link, flow))
        self._link, self._share = link[order], share[order]
        self.count = np.bincount(flow, minlength=len(graph.flows))
        """Of the rows of each flow."""
        self._first = np.cumsum(self.count) - self.count

    def signature(self, random: _Words) -> _Words:
        """A number for each flow; those with equal links and shares have the same."""
        terms = random[self._link] * _fixed_point(self._share)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms)])
        result: _Words = sums[self._first + self.count] - sums[self._first]
        return result

    def table(self, flows: Column) -> _Table:
        """The rows of these flows."""
        counts = self.count[flows]
        first = np.concatenate([[0], np.cumsum(counts)])
        entries = np.repeat(self._first[flows] - first[:-1], counts) + np.arange(first[-1])
        return _Table(first, self._link[entries], self._share[entries])


def _standing_for(every: Sequence[Hops], rates: Column) -> Column:
    """The port that stands for each port; -1: nothing crosses it, or no packets are spread."""
    stands_for = np.full(len(rates), -1)
    if all((hops.share == 1).all() for hops in every):
        return stands_for
    signature = np.zeros(len(rates), np.uint64)
    random = _random(sum(hops.count for hops in every))
    for hops in every:
        own, random = random[: hops.count], random[hops.count :]
        np.add.at(signature, hops.port, own[hops.of] * _fixed_point(hops.share))
    used = np.unique(np.concatenate([hops.port for hops in every]))
    keys = np.stack([signature[used], rates[used].astype(np.uint64)])
    _, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    stands_for[used] = used[first[group.reshape(-1)]]
    return stands_for


def _without(hops: Hops, stands_for: Column) -> Hops:
    """Without the ports for which another stands."""
    own = stands_for[hops.port]
    kept = (own < 0) | (own == hops.port)
    return replace(
        hops, of=hops.of[kept], port=hops.port[kept], share=hops.share[kept], hop=hops.hop[kept]
    )


def _spread_out(hops: Hops, numbers: Column) -> tuple[Column, Column, Shares]:
    """The rows of all flows, from those of their routes."""
    starts = np.searchsorted(hops.of, np.arange(hops.count + 1))
    counts = np.diff(starts)[hops.route_of_flow] if hops.count else np.zeros(0, np.int64)
    first = np.concatenate([[0], np.cumsum(counts)])
    begin = starts[hops.route_of_flow] if hops.count else np.zeros(0, np.int64)
    entries = np.repeat(begin - first[:-1], counts) + np.arange(first[-1])
    return np.repeat(numbers[: len(counts)], counts), hops.port[entries], hops.share[entries]


def _random(count: int) -> _Words:
    """Odd 64-bit numbers. Two different sets of them have the same sum only by a rare chance."""
    return np.random.default_rng(_RANDOM).integers(0, 2**63, count, np.uint64) * 2 + 1


def _fixed_point(share: Shares) -> _Words:
    """Shares as odd numbers, so that a product with one keeps all bits of the other factor."""
    return np.rint(share * 2**40).astype(np.uint64) * 2 + 1


def _inside_servers(spec: Spec, inside: Topology) -> Fabric:
    """What the arithmetic of paths needs to know of the links inside servers."""
    switches = [switch.name for switch in inside.switches]
    return Fabric(
        overhead=INFINIBAND,
        mtu_bytes={host.name: Nic().mtu for host in inside.hosts},
        latency_ps=dict.fromkeys(switches, spec.hosts.scale_up.latency_ps),
        cut_through=frozenset(switches),
    )
