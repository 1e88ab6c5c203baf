"""A three-tier fat tree of identical switches with k ports each (Al-Fares, SIGCOMM'08).

             core1           core2           core3  ...              (k/2)^2 cores
               │               │               │
    ┌──────────┴───────────────┴──── to every pod ──────────┐
    agg1     agg2   │    agg3     agg4   │  ...                     k/2 in each pod
     │   ╲ ╱   │    │     │   ╲ ╱   │    │
     │   ╱ ╲   │    │     │   ╱ ╲   │    │
    edge1    edge2  │    edge3    edge4  │  ...                     k/2 in each pod
    ┌┴─┐     ┌┴─┐   │    ┌┴─┐     ┌┴─┐   │
    h1 h2    h3 h4  │    h5 h6    h7 h8  │  ...                     k/2 on each edge switch
        pod 1               pod 2              k pods

Half of the ports of an edge or aggregation switch lead down and half lead up, so all k^3/4 hosts
can send at full rate at the same time. The first aggregation switch of every pod has cables to the
first k/2 cores, the second to the next k/2, and so on. So there are (k/2)^2 paths between two pods,
one over each core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topologies.graph import Builder, Topology, Wire
from topologies.mininet_topo import MININET_WIRE, as_mininet

if TYPE_CHECKING:
    from mininet.topo import Topo


def fat_tree(k: int, *, host_wire: Wire, edge_wire: Wire, core_wire: Wire) -> Topology:
    """Builds the fabric of switches with `k` ports; `k` is even.

    `edge_wire` is for the cables between edge and aggregation, `core_wire` for those between
    aggregation and core. The first ports of a switch lead down, in order, and the next ones up. A
    core's port N leads to pod N.
    """
    half = k // 2
    builder = Builder()
    cores = [builder.add_switch(f"core{n + 1}", "core") for n in range(half * half)]
    for pod in range(k):
        own = range(pod * half, (pod + 1) * half)
        edges = [builder.add_switch(f"edge{n + 1}", "edge") for n in own]
        aggregations = [builder.add_switch(f"agg{n + 1}", "aggregation") for n in own]
        for edge in edges:
            builder.add_hosts(edge, half, host_wire)
            for above in aggregations:
                builder.add_cable(edge, above, edge_wire)
        for place, aggregation in enumerate(aggregations):
            for core in cores[place * half : (place + 1) * half]:
                builder.add_cable(aggregation, core, core_wire)
    return builder.topology()


def fat_tree_for_mininet(k: int = 4) -> Topo:
    """`mn --custom topologies/fat_tree.py --topo fat_tree,4`."""
    return as_mininet(
        fat_tree(k, host_wire=MININET_WIRE, edge_wire=MININET_WIRE, core_wire=MININET_WIRE)
    )


topos = {"fat_tree": fat_tree_for_mininet}
