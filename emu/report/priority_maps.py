"""Finds which of two ports with different priority maps differs from most ports.

    h1 ──▶ leaf1:h1   leaf1:spine1 ──▶ spine1:leaf1
           DSCP 26 is 3     sends 3         DSCP 26 is 0

A switch sends a packet with the priority that the map of its ingress port gave it. If
the map of the next hop gives another priority, the map that most switch ports share is
taken to be right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from emu.report.run_view import RunFacts
from emu.spec.classes import DSCPS, PRIORITIES, Classes
from topologies.graph import Port

UNTAGGED = PRIORITIES
"""The code point for frames without a VLAN tag, at a port that trusts PCP."""


@dataclass(frozen=True)
class WrongMapPort:
    """A port, and the map that it should have."""

    port: Port
    right: Classes


def port_with_wrong_map(
    run: RunFacts, came: Iterable[Port], far: Port, priority: int
) -> WrongMapPort | None:
    """The port whose map differs from that of most ports, of two whose maps disagree about packets
    of `priority`. None when they agree.

    `came`: ports where packets arrived with this priority. `far`: the ingress port at the next hop.
    """
    maps = {port: _map(run.spec.port(port).classes) for port in run.topology.switch_ports}
    for port in came:
        disputed = [
            point for point, own in maps[port].items() if own == priority != maps[far].get(point)
        ]
        if not disputed:
            continue
        priorities_by_port = {
            candidate: tuple(map(own.get, disputed)) for candidate, own in maps.items()
        }
        ((most, _),) = Counter(priorities_by_port.values()).most_common(1)
        odd = far if priorities_by_port[far] != most else port
        right = next(
            candidate for candidate, priorities in priorities_by_port.items() if priorities == most
        )
        return WrongMapPort(odd, run.spec.port(right).classes)
    return None


def _map(classes: Classes) -> dict[tuple[str, int], int]:
    """Code point of the trusted field -> priority."""
    if classes.trust == "dscp":
        return {("dscp", dscp): classes.priority_of_dscp(dscp) for dscp in range(DSCPS)}
    tagged = {("pcp", pcp): classes.priority_of_pcp(pcp) for pcp in range(PRIORITIES)}
    return {**tagged, ("pcp", UNTAGGED): classes.untagged}
