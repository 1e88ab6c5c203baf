"""The fabric as a picture: hosts below, switches above, each cable in two halves.

A half belongs to the port it touches. Its colour shows how busy that port was. A
disc on it shows for how much of the time flow control held the port back.

        spine1              a disc at leaf1's end of this cable: leaf1 had to
         ┃ ← spine1's half  wait before it could send to spine1
         ┃
         ● ← leaf1's half
        leaf1

This file computes the geometry and the texts; the template draws them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import hypot, sqrt

from emu.report.palette import HELD_BACK, Legend, load_colour
from emu.report.run_view import PortLoad, RunFacts
from emu.report.short import short_count
from topologies.distance import distances
from topologies.graph import Port, Topology

NODE_GAP, LEAST_WIDTH = 10.0, 500.0
"""The gap between neighbours in the widest layer, and the least width of all layers, in the
picture's own units."""
NODE_MARGIN, LETTER_WIDTH, NODE_HEIGHT = 14.0, 6.5, 22.0
"""A node is as wide as its name."""
LAYER_GAP, STEEPEST = 120.0, 0.11
"""The least gap between layers, as a distance and as a share of the picture's width. With a smaller
share, cables would be nearly horizontal."""
PARALLEL_GAP = 9.0
"""The gap between cables that join the same two nodes."""
MOST_NODES = 100
"""With more nodes than this, a picture would be unreadable."""
DISC_RADIUS = 11.0
"""The radius for a port that was held back all the time. A disc's area is in proportion to the
share of time."""
LEAST_SHOWN = 0.005
"""A port that waited for less than this share of the time has no disc."""


@dataclass(frozen=True)
class Node:
    """A host or a switch with its place in the picture."""

    name: str
    is_host: bool
    x: float
    y: float
    failed: int = 0
    """The number of its queue pairs that went to the error state."""
    height: float = NODE_HEIGHT

    @property
    def width(self) -> float:
        return _node_width(self.name)


@dataclass(frozen=True)
class Half:
    """One port's half of its cable, from the port to the middle."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    title: str
    disc_x: float
    disc_y: float
    disc_radius: float
    """0 when flow control did not hold the port back."""
    drops: int = 0
    """Packets dropped by the port, or by a fault on its cable."""

    @property
    def drops_label(self) -> str:
        return short_count(self.drops)


@dataclass(frozen=True)
class Picture:
    width: float
    height: float
    nodes: tuple[Node, ...]
    halves: tuple[Half, ...]
    discs: Legend | None
    """None: the model does not know what flow control did."""

    @property
    def has_drops(self) -> bool:
        return any(half.drops for half in self.halves)

    @property
    def has_failures(self) -> bool:
        return any(node.failed for node in self.nodes)


def picture(run: RunFacts) -> Picture | None:
    """The fabric of a run and what its ports did; None when it has too many nodes."""
    if len(run.topology.nodes) > MOST_NODES:
        return None
    failed = Counter(qp.src for qp in run.recording.failed_queue_pairs)
    nodes = tuple(replace(n, failed=failed[n.name]) for n in _placed(run.topology))
    at = {node.name: node for node in nodes}
    return Picture(
        width=max(node.x + node.width / 2 for node in nodes) + NODE_GAP / 2,
        height=max(node.y for node in nodes) + NODE_HEIGHT,
        nodes=nodes,
        halves=tuple(
            _half(run, port, at, load=run.port_load.get(run.topology.port_name[port]))
            for cable in run.topology.cables
            for port in (cable.a, cable.b)
        ),
        discs=HELD_BACK[run.recording.fabric_kind.flow_control] if run.has_packets else None,
    )


def _placed(topology: Topology) -> tuple[Node, ...]:
    """The nodes with their places. Hosts are in the lowest layer; the layer of a switch is its
    distance in hops from the nearest host."""
    layers = _layers(topology)
    widths = [sum(_node_width(name) + NODE_GAP for name in layer) for layer in layers]
    width = max(LEAST_WIDTH, *widths)
    gap = max(LAYER_GAP, STEEPEST * width)
    placed = []
    for height, layer in enumerate(layers):
        step = width / len(layer)
        for place, name in enumerate(layer):
            x = (place + 0.5) * step
            y = (len(layers) - 1 - height) * gap + NODE_HEIGHT
            placed.append(Node(name, name in topology.host, x, y))
    return tuple(placed)


def _node_width(name: str) -> float:
    return NODE_MARGIN + LETTER_WIDTH * len(name)


def _layers(topology: Topology) -> list[list[str]]:
    distance = distances(topology.neighbours, topology.host)
    highest = max(distance.values(), default=0)
    names = [*topology.host, *topology.switch]
    layers = [
        [name for name in names if distance.get(name, highest) == n] for n in range(highest + 1)
    ]
    return [layer for layer in layers if layer]


def _half(run: RunFacts, port: Port, at: Mapping[str, Node], load: PortLoad | None) -> Half:
    here, there = at[port.node], at[run.topology.peer[port].node]
    dx, dy = _aside(run.topology, port, here, there)
    middle_x, middle_y = (here.x + there.x) / 2 + dx, (here.y + there.y) / 2 + dy
    x1, y1 = here.x + dx, here.y + dy
    share = (load.waiting or 0.0) if load is not None else 0.0
    return Half(
        x1=x1,
        y1=y1,
        x2=middle_x,
        y2=middle_y,
        colour=load_colour(load.utilisation if load is not None else 0.0).css,
        title=_title(run, port, load),
        disc_x=x1 + (middle_x - x1) * 0.6,
        disc_y=y1 + (middle_y - y1) * 0.6,
        disc_radius=DISC_RADIUS * sqrt(share) if share >= LEAST_SHOWN else 0.0,
        drops=run.port_drops.get(run.topology.port_name[port], 0),
    )


def _aside(topology: Topology, port: Port, here: Node, there: Node) -> tuple[float, float]:
    """The offset of a cable from the line between its nodes, where parallel cables join them."""
    cables = [
        cable
        for cable in topology.cables
        if {cable.a.node, cable.b.node} == {here.name, there.name}
    ]
    offset = (cables.index(topology.cable[port]) - (len(cables) - 1) / 2) * PARALLEL_GAP
    first, second = sorted((here, there), key=lambda node: node.name)
    length = hypot(second.x - first.x, second.y - first.y) or 1.0
    return (
        -(second.y - first.y) / length * offset,
        (second.x - first.x) / length * offset,
    )


def _title(run: RunFacts, port: Port, load: PortLoad | None) -> str:
    name = run.topology.port_name[port]
    if load is None:
        return f"{name}: not sampled"
    if load.waiting is None:
        return f"{name}: {load.utilisation:.1%} busy"
    held_back = HELD_BACK[run.recording.fabric_kind.flow_control].name
    drops = run.port_drops.get(name, 0)
    lost = f", {drops:,} packets dropped" if drops else ""
    return f"{name}: {load.utilisation:.1%} busy, {load.waiting:.1%} of the time {held_back}{lost}"
