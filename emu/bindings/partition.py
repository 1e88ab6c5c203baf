"""How the fabric of the virtual clock is cut into parts, which run side by side.

A cut goes through cables. Some nodes must share a part, since one knows at once what happens at the
other: both ends of a cable that has a fault, the GPUs of a server, hosts that use one device, and
hosts of which one waits for operations of the other without a message between them. The rest is
cut so that each part has about the same load, and most cables have both ends in one part: a leaf
stays with its hosts if there are enough leaves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from emu._core import lib
from emu.spec.scenario import Spec
from topologies.graph import Topology
from traffic.graph import OperationGraph


@dataclass(frozen=True)
class Partition:
    """The part of each node."""

    parts: int = 1
    threads: int = 1
    """At most as many as parts."""
    number: Mapping[str, int] = field(default_factory=dict)
    """Node -> number of its part; 0 for nodes that are left out."""
    own: range | None = None
    """The numbers of the parts that this process runs; None: all."""

    def part_of(self, node: str) -> int:
        return self.number.get(node, 0)

    def has(self, node: str) -> bool:
        """Whether this process runs the node."""
        return self.own is None or self.part_of(node) in self.own


WHOLE = Partition()
"""A fabric in one piece."""


def partition(
    spec: Spec, topology: Topology, graph: OperationGraph, parts: int, threads: int
) -> Partition:
    """Cuts a fabric into at most so many parts: fewer if nodes must stay together."""
    wanted = min(parts, len(topology.nodes), lib.FABRIC_PARTS_MAX)
    if wanted == 1:
        return WHOLE
    load = _loads(topology, graph)
    together = _Together(node.name for node in topology.nodes)
    for nodes in _inseparable(spec, topology, graph):
        together.join(nodes)
    alone = together.groups()
    for host in topology.hosts:
        together.join((host.name, topology.peer[topology.ports[host.name][0]].node))
    with_leaves = together.groups()
    groups = with_leaves if len(with_leaves) >= wanted else alone
    number = _spread(groups, topology, load, min(wanted, len(groups)))
    used = {part: place for place, part in enumerate(sorted(set(number.values())))}
    return Partition(
        parts=len(used),
        threads=max(1, min(threads, len(used))),
        number={node: used[part] for node, part in number.items()},
    )


class _Together:
    """Nodes that are joined to groups (union and find)."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self._parent = {node: node for node in nodes}

    def join(self, nodes: Iterable[str]) -> None:
        first, *others = (self._root(node) for node in nodes)
        for other in others:
            self._parent[self._root(other)] = self._root(first)

    def groups(self) -> list[list[str]]:
        """The groups, in the order of their first nodes."""
        groups = defaultdict(list)
        for node in self._parent:
            groups[self._root(node)].append(node)
        return list(groups.values())

    def _root(self, node: str) -> str:
        while (parent := self._parent[node]) != node:
            self._parent[node] = node = self._parent[parent]
        return node


def _inseparable(spec: Spec, topology: Topology, graph: OperationGraph) -> Iterable[Sequence[str]]:
    """Nodes that must share a part."""
    for fault in spec.faults:
        if fault.what.applies(spec):
            for port in fault.what.ports(spec, topology):
                yield port.node, topology.peer[port].node
    if spec.scale_up is not None:
        servers = defaultdict(list)
        for host in topology.hosts:
            for port in spec.scale_up.ports[host.name]:
                servers[spec.scale_up.peer[port].node].append(host.name)
        yield from servers.values()
    users = defaultdict(list)
    for flow in graph.flows:
        if flow.device:
            users[flow.device].append(flow.src)
    yield from users.values()
    yield from _informed_at_once(graph)


def _informed_at_once(graph: OperationGraph) -> Iterable[tuple[str, str]]:
    """Pairs of hosts of which one knows at once when an operation of the other is over: it is
    neither the sender nor the receiver of a message, or it is the responder of a READ."""
    flows = graph.flows
    names = list(dict.fromkeys(host for flow in flows for host in (flow.src, flow.dst)))
    number = {name: place for place, name in enumerate(names)}
    src = np.array([number[flow.src] for flow in flows], np.int64)
    dst = np.array([number[flow.dst] for flow in flows], np.int64)
    fetches = np.array([flow.verb.fetches for flow in flows], bool)
    earlier, later = graph.flow_of[graph.earlier], graph.flow_of[graph.later]
    sender, receiver, waits = src[earlier], dst[earlier], src[later]
    by_message = (waits == receiver) & ~fetches[earlier]
    told = np.flatnonzero((waits != sender) & ~by_message)
    pairs = np.unique(np.stack([sender[told], waits[told]]), axis=1)
    return [(names[one], names[other]) for one, other in pairs.T.tolist()]


def _loads(topology: Topology, graph: OperationGraph) -> dict[str, float]:
    """An estimate of each node's share of the packets: of hosts by their bytes, of a leaf by its
    hosts', of the other switches the same for all."""
    sizes = np.bincount(graph.flow_of, graph.size_bytes, minlength=len(graph.flows))
    load: dict[str, float] = {node.name: 0.0 for node in topology.nodes}
    for flow, size in zip(graph.flows, sizes.tolist(), strict=True):
        load[flow.src] += 1 + size
        load[flow.dst] += 1 + size
    for host in topology.hosts:
        load[topology.peer[topology.ports[host.name][0]].node] += load[host.name]
    total = sum(load[host.name] for host in topology.hosts)
    inner = [switch.name for switch in topology.switches if not load[switch.name]]
    return load | dict.fromkeys(inner, total / max(1, len(inner)))


def _spread(
    groups: Sequence[Sequence[str]], topology: Topology, load: Mapping[str, float], parts: int
) -> dict[str, int]:
    """Gives each part a stretch of the groups with hosts, since neighbours in a topology are
    neighbours in its order. Each of the other groups joins the part to which it has most cables,
    those next to the hosts first."""
    number: dict[str, int] = {}
    loads = {id(group): sum(load[node] for node in group) + 1e-9 for group in groups}
    with_hosts = [group for group in groups if any(node in topology.host for node in group)]
    total, before = sum(loads[id(group)] for group in with_hosts), 0.0
    carried = [0.0] * parts
    for group in with_hosts:
        weight = loads[id(group)]
        part = min(parts - 1, int((before + weight / 2) / total * parts))
        number |= dict.fromkeys(group, part)
        carried[part] += weight
        before += weight
    fair = 1.1 * sum(loads.values()) / parts
    waiting = [group for group in groups if group[0] not in number]
    while waiting:
        near = [group for group in waiting if _cables_to(group, topology, number)] or waiting
        joins = {id(group): _cables_to(group, topology, number) for group in near}
        for group in near:
            cables = joins[id(group)]
            open_parts = [part for part in range(parts) if carried[part] < fair] or range(parts)
            part = max(open_parts, key=lambda part: (cables[part], -carried[part]))
            number |= dict.fromkeys(group, part)
            carried[part] += loads[id(group)]
        waiting = [group for group in waiting if group[0] not in number]
    return number


def _cables_to(group: Sequence[str], topology: Topology, number: Mapping[str, int]) -> Counter[int]:
    """How many cables of a group lead to each part, as far as nodes have parts."""
    far = (topology.peer[port].node for node in group for port in topology.ports[node])
    return Counter(number[node] for node in far if node in number)
