"""A dumbbell: two switches with one cable between them, the same number of hosts on each.

h1 ─┐               ┌─ h3
    left ───────── right
h2 ─┘               └─ h4
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topologies.graph import Builder, Topology, Wire
from topologies.mininet_topo import MININET_LINKS, as_mininet

if TYPE_CHECKING:
    from mininet.topo import Topo


def dumbbell(hosts_per_side: int, *, host_wire: Wire, fabric_wire: Wire) -> Topology:
    """Builds the fabric; a switch's host ports come first, then the cable between the two."""
    builder = Builder()
    sides = [builder.add_switch(name, "side") for name in ("left", "right")]
    for side in sides:
        builder.add_hosts(side, hosts_per_side, host_wire)
    left, right = sides
    builder.add_cable(left, right, fabric_wire)
    return builder.topology()


def dumbbell_for_mininet(hosts_per_side: int = 2) -> Topo:
    """`mn --custom topologies/dumbbell.py --topo dumbbell,2`."""
    return as_mininet(dumbbell(hosts_per_side, **MININET_LINKS))


topos = {"dumbbell": dumbbell_for_mininet}
