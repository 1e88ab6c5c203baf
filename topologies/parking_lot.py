"""A parking lot: switches in a row, each with its own hosts.

  h1     h2     h3     h4
  │      │      │      │
 lot1 ── lot2 ── lot3 ── lot4

A distant sender shares each cable on its path with the senders that join there, and gets a smaller
share of each.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from topologies.graph import Builder, Topology, Wire
from topologies.mininet_topo import MININET_LINKS, as_mininet

if TYPE_CHECKING:
    from mininet.topo import Topo


def parking_lot(
    switches: int, hosts_per_switch: int, *, host_wire: Wire, fabric_wire: Wire
) -> Topology:
    """Builds the fabric; a switch's host ports come first, then those to its neighbours."""
    builder = Builder()
    names = [builder.add_switch(f"lot{n + 1}", "lot") for n in range(switches)]
    for name in names:
        builder.add_hosts(name, hosts_per_switch, host_wire)
    for near, far in pairwise(names):
        builder.add_cable(near, far, fabric_wire)
    return builder.topology()


def parking_lot_for_mininet(switches: int = 4, hosts_per_switch: int = 1) -> Topo:
    """`mn --custom topologies/parking_lot.py --topo parking_lot,4,1`."""
    return as_mininet(parking_lot(switches, hosts_per_switch, **MININET_LINKS))


topos = {"parking_lot": parking_lot_for_mininet}
