"""A leaf-spine (two-tier Clos) fabric: every leaf has one cable to every spine.

spine1   spine2
  │ ╲   ╱ │
  │   ╳   │
  │ ╱   ╲ │
leaf1   leaf2
┌┴─┐    ┌┴─┐
h1 h2   h3 h4
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topologies.graph import Builder, Topology, Wire
from topologies.mininet_topo import MININET_LINKS, as_mininet

if TYPE_CHECKING:
    from mininet.topo import Topo


def leaf_spine(
    spines: int, leaves: int, hosts_per_leaf: int, *, host_wire: Wire, fabric_wire: Wire
) -> Topology:
    """Builds the fabric; a leaf's host ports come first, then those to the spines."""
    builder = Builder()
    spine_names = [builder.add_switch(f"spine{n + 1}", "spine") for n in range(spines)]
    for n in range(leaves):
        leaf = builder.add_switch(f"leaf{n + 1}", "leaf")
        builder.add_hosts(leaf, hosts_per_leaf, host_wire)
        for spine in spine_names:
            builder.add_cable(leaf, spine, fabric_wire)
    return builder.topology()


def leaf_spine_for_mininet(spines: int = 2, leaves: int = 2, hosts_per_leaf: int = 4) -> Topo:
    """`mn --custom topologies/leaf_spine.py --topo leaf_spine,2,2,4`."""
    return as_mininet(leaf_spine(spines, leaves, hosts_per_leaf, **MININET_LINKS))


topos = {"leaf_spine": leaf_spine_for_mininet}
