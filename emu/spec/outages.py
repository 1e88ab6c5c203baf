"""The times at which cables are down, which are known before a run begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from emu.spec.fault import Fault
from emu.spec.fault.kind import LostLinks
from emu.spec.fault.kinds.loss import Loss
from emu.spec.route_recording import LinkEvent
from emu.spec.scenario import Spec
from topologies.graph import Cable, Port, Topology

PS_PER_NS = 1000

Hops = dict[str, tuple[Port, ...]]
"""Host -> the ports on a shortest path to it."""


@dataclass(frozen=True)
class Rerouting:
    """A change of a switch's routes at `at_ps`."""

    at_ps: int
    switch: str
    changes: Hops
    """Host -> its new next hops, for hosts whose routes change. No next hops: unreachable."""
    cause_ps: int
    """The time of the loss or the return of a link that it follows; 0 at the start."""


def slowest_convergence_ps(spec: Spec) -> int:
    """The longest `convergence` of all switches."""
    switches = spec.topology.build().switch
    return max(spec.switch(name).routing.convergence_ps for name in switches)


def outages(spec: Spec) -> list[tuple[int, frozenset[Cable]]]:
    """The times at which a link is lost or comes back, each with the cables then down."""
    topology = spec.topology.build()
    edges: list[tuple[int, int, Cable]] = []
    for fault in spec.faults:
        for port in lost_links(fault, spec, topology):
            for begin_ps, end_ps in times_down(fault, spec.time_limit_ps):
                edges += _edges(begin_ps, end_ps, topology.cable[port])
    return list(_states(sorted(edges, key=lambda edge: edge[0])))


def silent_outages(spec: Spec) -> list[tuple[int, frozenset[Cable]]]:
    """The same of cables between switches that lose every packet, while their ports stay up."""
    topology = spec.topology.build()
    edges: list[tuple[int, int, Cable]] = []
    for fault in spec.faults:
        if not isinstance(fault.what, Loss) or not fault.what.hits_all:
            continue
        for cable in {topology.cable[port] for port in fault.what.ports(spec, topology)}:
            if cable.a.node in topology.switch and cable.b.node in topology.switch:
                edges += _edges(fault.at_ps, end_of(fault, spec.time_limit_ps), cable)
    return list(_states(sorted(edges, key=lambda edge: edge[0])))


def link_events(spec: Spec) -> tuple[LinkEvent, ...]:
    """The changes of links in a run."""
    number = {cable: place for place, cable in enumerate(spec.topology.build().cables)}
    kinds = [dict(found(spec)) for found in (outages, silent_outages)]
    cut: list[tuple[int, ...]] = [(), ()]
    events = []
    for at_ps in sorted(set().union(*kinds)):
        for kind, states in enumerate(kinds):
            if at_ps in states:
                cut[kind] = tuple(sorted(number[cable] for cable in states[at_ps]))
        if at_ps < spec.time_limit_ps:
            events.append(LinkEvent(at_ps // PS_PER_NS, *cut))
    return tuple(events)


def _edges(begin_ps: int, end_ps: int, cable: Cable) -> list[tuple[int, int, Cable]]:
    return [(begin_ps, 1, cable), (end_ps, -1, cable)]


def lost_links(fault: Fault, spec: Spec, topology: Topology) -> Sequence[Port]:
    """The links that a fault takes away, each named by one of its ports."""
    return fault.what.ports(spec, topology) if isinstance(fault.what, LostLinks) else []


def times_down(fault: Fault, time_limit_ps: int) -> Iterator[tuple[int, int]]:
    """The intervals in which the fault keeps its links down, up to the end of the run."""
    if isinstance(fault.what, LostLinks):
        yield from fault.what.times_down(fault.at_ps, end_of(fault, time_limit_ps))


def end_of(fault: Fault, time_limit_ps: int) -> int:
    """When a fault is over, at the latest at the end of the run, in picoseconds."""
    return time_limit_ps if fault.end_ps is None else min(fault.end_ps, time_limit_ps)


def _states(edges: list[tuple[int, int, Cable]]) -> Iterator[tuple[int, frozenset[Cable]]]:
    cuts: dict[Cable, int] = {}
    for index, (at_ps, more, cable) in enumerate(edges):
        cuts[cable] = cuts.get(cable, 0) + more
        if index + 1 == len(edges) or edges[index + 1][0] > at_ps:
            yield at_ps, frozenset(cable for cable, count in cuts.items() if count)


@lru_cache(maxsize=64)
def _degraded(cables: tuple[Cable, ...], topology: Topology) -> Topology:
    return Topology(topology.hosts, topology.switches, cables)


def degraded(topology: Topology, down: frozenset[Cable]) -> Topology:
    """The fabric without the cables that are down. Nodes and ports keep their names and numbers."""
    if not down:
        return topology
    up = tuple(cable for cable in topology.cables if cable not in down)
    return _degraded(up, topology)
