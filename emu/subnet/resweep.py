"""What the subnet manager does about lost links: it sweeps again, and the tables change.

A degraded fabric is known beforehand, so its sweep is done beforehand, too. A second
OpenSM would give out LIDs in its own order; a real one keeps those it has given, so
its tables are put into the LIDs of the first. The manager sits on the first host:
what is cut off from there keeps the tables it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import networkx as nx

from emu.subnet.opensm import sweep
from emu.subnet.subnet import Lfts, Subnet
from topologies.graph import Cable, Topology


def sweep_through(
    topology: Topology, outages: Sequence[tuple[int, frozenset[Cable]]], *, workdir: Path
) -> Subnet:
    """The subnet of the whole fabric, with its tables after each change of what is down.

    `outages`: from when on (picoseconds) which cables are down. Raises as `sweep` does.
    """
    subnet = sweep(topology, workdir=workdir)
    tables: dict[frozenset[Cable], Lfts] = {frozenset(): subnet.lfts}
    for number, down in enumerate(dict.fromkeys(down for _, down in outages)):
        if down not in tables:
            tables[down] = _swept(topology, down, subnet, workdir / f"resweep{number}")
    return replace(subnet, later=tuple((at_ps, tables[down]) for at_ps, down in outages))


def _swept(topology: Topology, down: frozenset[Cable], subnet: Subnet, workdir: Path) -> Lfts:
    """The tables of all switches when these cables are down, in the LIDs of `subnet`."""
    seen = _seen_by_the_manager(topology, down)
    if not seen.switches:
        return subnet.lfts
    again = sweep(seen, workdir=workdir)
    lid = {again.lids[name]: subnet.lids[name] for name in again.lids}
    tables = {
        switch: {lid[own]: port for own, port in lft.items()} for switch, lft in again.lfts.items()
    }
    return subnet.lfts | tables


def _seen_by_the_manager(topology: Topology, down: frozenset[Cable]) -> Topology:
    """The part of the fabric that the first host is in."""
    up = tuple(cable for cable in topology.cables if cable not in down)
    degraded = Topology(topology.hosts, topology.switches, up)
    here = nx.node_connected_component(degraded.graph, topology.hosts[0].name)
    return Topology(
        tuple(host for host in topology.hosts if host.name in here),
        tuple(switch for switch in topology.switches if switch.name in here),
        tuple(cable for cable in up if cable.a.node in here),
    )
