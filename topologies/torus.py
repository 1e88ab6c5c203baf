"""Switches in a grid of two or three dimensions, in which every row is a ring.

    t1_1 ── t1_2 ── t1_3 ──╮        each switch has two neighbours in each dimension;
     │       │       │             the last switch of a row has a cable to the first
    t2_1 ── t2_2 ── t2_3 ──╮
     │       │       │
    t3_1 ── t3_2 ── t3_3 ──╮
     ╰       ╰       ╰

A torus has short cables and many paths, and a credit loop is possible in each row. A switch's ports
to hosts come first, then those of one dimension after the other, as dimension-order routing expects
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

from topologies.graph import Builder, Topology, Wire
from topologies.mininet_topo import MININET_LINKS, as_mininet

if TYPE_CHECKING:
    from mininet.topo import Topo

Place = tuple[int, ...]


def torus(
    dimensions: Sequence[int], hosts_per_switch: int, *, host_wire: Wire, fabric_wire: Wire
) -> Topology:
    """Builds the fabric; each dimension has at least three switches."""
    builder = Builder()
    places = list(product(*map(range, dimensions)))
    for place in places:
        name = builder.add_switch(_name(place), "torus")
        builder.add_hosts(name, hosts_per_switch, host_wire)
    for axis, size in enumerate(dimensions):
        for place in places:
            following = (*place[:axis], (place[axis] + 1) % size, *place[axis + 1 :])
            builder.add_cable(_name(place), _name(following), fabric_wire)
    return builder.topology()


def _name(place: Place) -> str:
    return "t" + "_".join(str(coordinate + 1) for coordinate in place)


def torus_for_mininet(rows: int = 3, columns: int = 3, hosts_per_switch: int = 1) -> Topo:
    """`mn --custom topologies/torus.py --topo torus,3,3,1`."""
    return as_mininet(torus((rows, columns), hosts_per_switch, **MININET_LINKS))


topos = {"torus": torus_for_mininet}
