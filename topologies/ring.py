"""Switches in a ring, each cabled to the next and the last to the first.

    h1 ─ ring1 ──── ring2 ─ h2
           │          │
    h4 ─ ring4 ──── ring3 ─ h3

Packets take the shorter direction, or either if both are equally long. A ring is the smallest
fabric that can have a cyclic buffer dependency: if every switch waits until the next one has free
buffer, none can send any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topologies.graph import Builder, Topology, Wire
from topologies.mininet_topo import MININET_LINKS, as_mininet

if TYPE_CHECKING:
    from mininet.topo import Topo


def ring(switches: int, hosts_per_switch: int, *, host_wire: Wire, fabric_wire: Wire) -> Topology:
    """Builds the fabric of at least three switches; a switch's host ports come first."""
    builder = Builder()
    names = [builder.add_switch(f"ring{n + 1}", "ring") for n in range(switches)]
    for name in names:
        builder.add_hosts(name, hosts_per_switch, host_wire)
    for name, following in zip(names, [*names[1:], names[0]], strict=True):
        builder.add_cable(name, following, fabric_wire)
    return builder.topology()


def ring_for_mininet(switches: int = 4, hosts_per_switch: int = 1) -> Topo:
    """`mn --custom topologies/ring.py --topo ring,4,1`."""
    return as_mininet(ring(switches, hosts_per_switch, **MININET_LINKS))


topos = {"ring": ring_for_mininet}
