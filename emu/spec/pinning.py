"""`routing: {kind: pinned}`: the path of each named flow, switch by switch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from emu.spec.scenario import Spec
from topologies.graph import Port, Topology
from traffic.graph import Flow

SourcePorts = Callable[[Iterable[Flow]], Mapping[str, int]]
"""Returns the UDP source port of each flow, as its NIC chooses it (`emu.bindings.source_ports`)."""


@dataclass(frozen=True)
class Pin:
    """The port of a switch by which the packets of a flow leave."""

    src: str
    dst: str
    udp_source: int
    port: Port


def pins_of(spec: Spec, switch: str, source_ports: SourcePorts) -> list[Pin]:
    """The pins of a switch: one for each pinned flow that has several next hops there."""
    routing = spec.switch(switch).routing
    if routing.kind != "pinned":
        return []
    topology = spec.topology.build()
    ports = source_ports(spec.fabric_flows())
    pins = []
    for flow, via in routing.paths.items():
        src, dst = spec.flow_ends[flow]
        port = _port_towards(topology, switch, via, dst)
        if port is not None:
            pins.append(Pin(src, dst, ports[flow], port))
    return pins


def lies_between(topology: Topology, src: str, via: str, dst: str) -> bool:
    """Whether a shortest path between two hosts leads over the switch `via`."""
    import networkx as nx  # few specs pin paths, and it takes long to import

    distance = nx.shortest_path_length
    graph = topology.graph
    return bool(distance(graph, src, via) + distance(graph, via, dst) == distance(graph, src, dst))


def _port_towards(topology: Topology, switch: str, via: str, dst: str) -> Port | None:
    """The first next hop to `dst` on a shortest path over `via`.

    None: there is a single next hop, or no such path.
    """
    hops = topology.hops(switch, dst)
    if len(hops) < 2:
        return None
    return next((hop for hop in hops if _leads(topology, hop, via, dst)), None)


def _leads(topology: Topology, hop: Port, via: str, dst: str) -> bool:
    return lies_between(topology, topology.peer[hop].node, via, dst)
