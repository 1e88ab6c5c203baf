"""A `Topology` as Mininet's `Topo`, with the same names, port numbers and addresses.

Mininet's own command also takes the files beside this one as custom files:

    mn --custom topologies/leaf_spine.py --topo leaf_spine,2,2,4 --link tc --switch ovsbr,stp=1

Then Mininet makes the links, and its switches learn addresses. A leaf-spine fabric has many loops,
so the switches need the spanning tree protocol (`stp=1`). `mn` must run under a Python that has
this project's libraries: `.venv/bin/python $(command -v mn) --custom ...`. `emu/mn.py` is a custom
file with these topologies and the emulator's cables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from topologies.graph import Topology, Wire

if TYPE_CHECKING:
    from mininet.topo import Topo

MININET_RATE_BPS = 1_000_000_000
"""The highest rate of Mininet's own links (`--link tc`)."""

MININET_WIRE = Wire(MININET_RATE_BPS, delay_ps=0)
MININET_LINKS = {"host_wire": MININET_WIRE, "fabric_wire": MININET_WIRE}
"""The wires of a topology that has host cables and fabric cables."""

PS_PER_NS = 1_000
BPS_PER_MBPS = 1_000_000


def as_mininet(topology: Topology) -> Topo:
    """The same fabric for Mininet; its links carry `bw` in Mbit/s and `delay`."""
    from mininet.topo import Topo

    topo = Topo()
    for switch in topology.switches:
        topo.addSwitch(switch.name, dpid=f"{switch.index:016x}")
    for host in topology.hosts:
        topo.addHost(host.name, ip=f"{host.ip}/8", mac=topology.ports[host.name][0].mac)
    for cable in topology.cables:
        topo.addLink(
            cable.a.node,
            cable.b.node,
            cable.a.number,
            cable.b.number,
            bw=cable.rate_bps / BPS_PER_MBPS,
            delay=f"{cable.delay_ps / PS_PER_NS:g}ns",
        )
    return topo


def all_topos() -> dict[str, Callable[..., Topo]]:
    """The name of a topology for `--topo` -> the function that takes the numbers after it."""
    from topologies import dumbbell, fat_tree, leaf_spine, parking_lot, rail, ring, torus

    makers = (dumbbell, fat_tree, leaf_spine, parking_lot, rail, ring, torus)
    return {name: make for module in makers for name, make in module.topos.items()}
