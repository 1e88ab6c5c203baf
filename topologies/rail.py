"""A rail-optimised fabric: servers with several NICs each, one for every GPU, and a leaf per rail.

      spine1        spine2
     ╱   │ ╲   ╳   ╱ │   ╲
 rail1   rail2   rail3   rail4         a leaf for the first NICs of all servers, ...
  │ │     │ │     │ │     │ │
 h1 h5   h2 h6   h3 h7   h4 h8
 └─── server 1: h1 h2 h3 h4 ───┘       server 2: h5 h6 h7 h8

The i-th GPUs of all servers reach each other over one switch. Other GPUs reach each other over a
spine, or first inside their server, which is not part of this fabric. Every NIC is a host here: it
has an address, a port and a namespace of its own. With R rails, server s has the hosts from
h((s-1) R + 1) to h(s R).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topologies.graph import Builder, Topology, Wire
from topologies.mininet_topo import MININET_LINKS, as_mininet

if TYPE_CHECKING:
    from mininet.topo import Topo


def rail(servers: int, rails: int, spines: int, *, host_wire: Wire, fabric_wire: Wire) -> Topology:
    """Builds the fabric; port N of a rail's switch leads to server N, later ports to spines."""
    builder = Builder()
    spine_names = [builder.add_switch(f"spine{n + 1}", "spine") for n in range(spines)]
    leaves = [builder.add_switch(f"rail{n + 1}", "rail") for n in range(rails)]
    for _ in range(servers):
        for leaf in leaves:
            nic = builder.add_host()
            builder.add_cable(leaf, nic, host_wire)
    for leaf in leaves:
        for spine in spine_names:
            builder.add_cable(leaf, spine, fabric_wire)
    return builder.topology()


def rail_for_mininet(servers: int = 2, rails: int = 4, spines: int = 2) -> Topo:
    """`mn --custom topologies/rail.py --topo rail,2,4,2`."""
    return as_mininet(rail(servers, rails, spines, **MININET_LINKS))


topos = {"rail": rail_for_mininet}
