"""What the flow model cannot do, what it does not know, and where it is wrong.

It is wrong where packets wait for other packets than those before them on a full link: a pause, or
missing credit, stops everything behind it.

    h2 ─┐
    h3 ─┼─ leaf2 ══▶ leaf1 ─▶ h1      leaf1's port to h1 is full: it pauses leaf2, and with the
    h4 ─┘                └──▶ h5      packets to h1 those from h4 to h5 stop as well

Here, those from h4 to h5 get all that the links of their route have left.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from emu.errors import UsageError
from emu.flow_model.network import Network
from emu.flow_model.routes import Column, Shares
from emu.spec.scenario import Spec
from emu.words import listed
from traffic.graph import OperationGraph

NOT_KNOWN = (
    "It has no packets, so there are no queues, pauses, credits, marks, drops, retransmissions, "
    "counters or captures. They are left out of this report; they are not zero.",
    "Each message gets its max-min fair share of the links on its route at once, as if congestion "
    "control were perfect. Start-up, oscillation and unfairness of a congestion control do not "
    "exist, nor do its rate limits and windows.",
    "A message that has to wait holds up no other: there is no head-of-line blocking, and "
    "congestion does not spread to flows that do not cross the full link.",
    "All messages count alike: priorities, service levels and their weights do not matter. "
    "Acknowledgements take room on cables, and so do flow-control packets on InfiniBand; CNPs "
    "take none.",
)
"""Sentences for every report of this model."""

_BYTES_NOT_CARRIED = "No bytes were carried, so none were compared at the receivers."
_MOST_ENTRIES = 3_000_000
"""With more entries of routes, the search for flows that may be held up is left out."""
_MOST_LINKS = 64
"""Oversubscribed links whose victims are looked for."""
_NAMED = 3
_FULL = 0.95
"""A cable is full if it carried this share of what it can."""
_MORE = 1.01
"""A link is oversubscribed above this share of its rate."""
_LATE = np.iinfo(np.int64).max


def refuse(spec: Spec) -> None:
    """Raises UsageError for a spec that the flow model cannot run; names the key."""
    if spec.has_bgp:
        raise UsageError(
            "switches.routing.control_plane: the flow model routes by shortest paths alone; use "
            "--model packets, or --set switches.routing.control_plane=static"
        )
    if spec.vlans:
        raise UsageError(
            "vlans: the flow model parts no hosts; use --model packets, or --set vlans={}"
        )
    if spec.faults:
        raise UsageError(
            "faults: the flow model has none, since it has no packets to lose or delay; use "
            "--model packets, or leave them out with --set faults=[]"
        )
    if spec.streams().flows:
        raise UsageError(
            "stack: tcp is the TCP of this machine's kernel, which the flow model does not have; "
            "use --model packets --clock real, or stack: rdma"
        )


def left_out(spec: Spec) -> tuple[str, ...]:
    """Sentences about keys of this spec that have no effect in the flow model."""
    return tuple(_left_out(spec))


def _left_out(spec: Spec) -> Iterable[str]:
    yield _BYTES_NOT_CARRIED
    if spec.capture:
        yield "capture: there is nothing to capture; use --model packets for captures."
    kinds = {spec.switch(switch.name).routing.kind for switch in spec.topology.build().switches}
    for kind in sorted({"adaptive", "spray"} & kinds):
        yield (
            f"routing.kind {kind}: packets are spread over equal ports perfectly evenly, at every "
            "moment. Real ones meet for moments: a permutation at full load takes some 40 % "
            "longer, and more where NICs take reordering for loss."
        )
    if "flowlet" in kinds:
        yield (
            "routing.kind flowlet: each flow keeps its first path, that of ecmp; the model knows "
            "no gaps between packets."
        )
    if len({entry.priority for entry in spec.traffic}) > 1:
        yield (
            "traffic: its entries have several priorities, and here all share links alike; the "
            "packet model serves them by switches.scheduling or subnet.vl_arbitration."
        )


def where_wrong(
    spec: Spec,
    graph: OperationGraph,
    network: Network,
    started_ps: Column,
    ended_ps: Column,
    link_bytes: Shares,
) -> tuple[str, ...]:
    """A warning if ports were oversubscribed, and which flows that would hold up; else none.

    A port is oversubscribed if, at some time, hosts send through it that together can send more
    than it carries, and that it keeps from using their own cables. `started_ps` and `ended_ps`: of
    each flow; -1: never.
    """
    if len(network.link) > _MOST_ENTRIES:
        return ("The workload is too large to look for ports that would hold other flows up.",)
    rows = _Crossings(graph, network, started_ps, ended_ps, link_bytes)
    full = rows.oversubscribed()
    if not len(full):
        return ()
    name_of = {
        link: name for name, link in zip(network.ports, network.link_of_port.tolist(), strict=True)
    }
    ports = listed([name_of[link] for link in full.tolist()], _NAMED)
    each, them = ("each", "them") if len(full) > 1 else ("it", "it")
    cause = f"More was sent to {ports} than {each} can carry"
    if not _stops_senders(spec):
        return (
            f"{cause}, and no flow control stops the senders: packets are dropped and sent again, "
            "of which this model knows nothing. Its times are too short there. Use --model "
            "packets.",
        )
    victims = rows.held_up_by(full)
    if not len(victims):
        return (
            f"{cause}. Flow control stops the cables before {them}, and only flows that need "
            f"{them} are on these cables. The sum of their rates is right; how they share it is "
            "not known here.",
        )
    flows = listed([graph.flows[number].name for number in victims.tolist()], _NAMED)
    return (
        f"{cause}. Flow control stops the cables before {them}, and with those cables {flows}, "
        f"which {'do' if len(victims) > 1 else 'does'} not need the full port (head-of-line "
        "blocking). This model lets such flows go on: their times, and those of what waits for "
        "them, may be far too short. Use --model packets to see them.",
    )


def _stops_senders(spec: Spec) -> bool:
    """Whether any switch stops its senders: with credits, PFC or 802.3x."""
    if spec.fabric_kind.uses_credits:
        return True
    ports = spec.topology.build().switch_ports
    return any(spec.port(port).pfc for port in ports)


class _Crossings:
    """A row for each flow and link of the fabric that it crosses."""

    def __init__(
        self,
        graph: OperationGraph,
        network: Network,
        started_ps: Column,
        ended_ps: Column,
        link_bytes: Shares,
    ) -> None:
        self._network = network
        flows = np.flatnonzero((network.route_of_flow >= 0) & (started_ps >= 0))
        routes = network.route_of_flow[flows]
        lengths = np.diff(network.first)[routes]
        offset = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(network.first[:-1][routes] - offset[:-1], lengths)
        entries += np.arange(offset[-1])
        in_fabric = network.near[network.link[entries]] >= 0
        number = {name: place for place, name in enumerate(network.nodes)}
        columns = graph.columns
        sources = columns.of_hosts(number.__getitem__, columns.bytes_from, np.int64)
        self._flow = np.repeat(flows, lengths)[in_fabric]
        self._link = network.link[entries][in_fabric]
        self._source = sources[self._flow]
        self._start = started_ps[self._flow]
        ended = ended_ps[self._flow]
        self._end = np.where(ended < 0, max(int(ended_ps.max(initial=0)), 1), ended)
        self._row_of_flow = _first_places(self._flow, len(network.route_of_flow))
        self._by_link = np.argsort(self._link, kind="stable")
        self._place_of_link = _first_places(self._link, len(network.capacity))
        self._first_cables(link_bytes)

    def _first_cables(self, link_bytes: Shares) -> None:
        """The rate at which each host can send, and whether its cable was full while it did."""
        network, nodes = self._network, len(self._network.nodes)
        own = network.near[self._link] == self._source
        self._rate = np.zeros(nodes)
        self._is_full = np.zeros(nodes, bool)
        start, end = np.full(nodes, _LATE), np.zeros(nodes, np.int64)
        np.minimum.at(start, self._source[own], self._start[own])
        np.maximum.at(end, self._source[own], self._end[own])
        cable = np.zeros(nodes, np.int64)
        cable[self._source[own]] = self._link[own]
        sent = np.unique(self._source[own])
        self._rate[sent] = network.capacity[cable[sent]]
        took = np.maximum(end[sent] - start[sent], 1)
        self._is_full[sent] = link_bytes[cable[sent]] > _FULL * self._rate[sent] * took

    def oversubscribed(self) -> Column:
        """The links that cannot carry what their senders can send.

        A sender counts from its first start to its last end on the link.
        """
        network, nodes = self._network, len(self._network.nodes)
        if not len(self._flow):
            return np.zeros(0, np.int64)
        pairs, place = np.unique(self._link * nodes + self._source, return_inverse=True)
        place = place.reshape(-1)
        start, end = np.full(len(pairs), _LATE), np.zeros(len(pairs), np.int64)
        np.minimum.at(start, place, self._start)
        np.maximum.at(end, place, self._end)
        link, source = pairs // nodes, pairs % nodes
        sends = np.minimum(self._rate[source], network.capacity[link])
        links, time = np.concatenate([link, link]), np.concatenate([start, end])
        change = np.concatenate([sends, -sends])
        order = np.lexsort((change, time, links))
        together = np.cumsum(change[order])
        begins = np.flatnonzero(np.diff(links[order], prepend=-1))
        most = np.maximum.reduceat(together, begins) - np.concatenate([[0], together])[begins]
        found = links[order][begins]
        kept_back = np.zeros(len(network.capacity), bool)
        kept_back[link[~self._is_full[source]]] = True
        result: Column = found[(most > _MORE * network.capacity[found]) & kept_back[found]]
        return result

    def held_up_by(self, full: Column) -> Column:
        """The flows on cables that an oversubscribed link stops, which do not need the link."""
        is_victim = np.zeros(len(self._network.route_of_flow), bool)
        for link in full[:_MOST_LINKS].tolist():
            is_victim[self._held_up_by(link)] = True
        return np.flatnonzero(is_victim)

    def _held_up_by(self, link: int) -> Column:
        """With a row for each cable on which it is stopped."""
        crossing = self._rows_of_links(np.array([link]))
        needing = self._flow[crossing]
        needs = np.zeros(len(self._network.route_of_flow), bool)
        needs[needing] = True
        start, end = self._start[crossing].min(), self._end[crossing].max()
        is_used = np.zeros(len(self._network.capacity), bool)
        is_used[self._link[_ranges(self._row_of_flow, needing)]] = True
        own = np.flatnonzero(is_used)
        stopped, nodes = np.zeros(len(self._network.capacity), bool), self._network.near[[link]]
        while len(nodes):
            before = own[np.isin(self._network.far[own], nodes) & ~stopped[own]]
            stopped[before] = True
            nodes = self._network.near[before]
        rows = self._rows_of_links(np.flatnonzero(stopped))
        meets = ~needs[self._flow[rows]] & (self._start[rows] < end) & (self._end[rows] > start)
        victims: Column = self._flow[rows[meets]]
        return victims

    def _rows_of_links(self, links: Column) -> Column:
        return self._by_link[_ranges(self._place_of_link, links)]


def _ranges(first: Column, numbers: Column) -> Column:
    """The places first[n] to first[n + 1] - 1 of each number."""
    counts = first[numbers + 1] - first[numbers]
    offset = np.cumsum(counts) - counts
    return np.repeat(first[numbers] - offset, counts) + np.arange(counts.sum())


def _first_places(numbers: Column, count: int) -> Column:
    """Where each number begins when they are in order."""
    return np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=count))])
