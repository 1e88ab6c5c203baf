"""The numbers of a fabric's switches in BGP: autonomous systems and router ids.

In a Clos fabric each leaf is an autonomous system of its own, the switches of a pod's middle tier
are one together, and so are all of the top tier:

    spine1, spine2    AS 4200100001     refuse routes that have been on a spine already
    leaf1             AS 4200000001
    leaf2             AS 4200000002

So no packet goes down and up again: a switch refuses a route that contains its own number. Switches
of one tier that are cabled to each other, as in a ring, each have a number of their own.

Source: RFC 7938, 5.2.2. The numbers are private ones of four bytes (RFC 6996).
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address

from topologies.distance import distances
from topologies.graph import Topology

_FIRST_PRIVATE = 4_200_000_000
_NUMBERS_OF_A_TIER = 100_000
_LOOPBACKS = int(IPv4Address("10.255.0.0"))


def autonomous_systems(topology: Topology) -> dict[str, int]:
    """The number of each switch's autonomous system."""
    tiers = _tiers(topology)
    used: dict[int, int] = {}
    numbers: dict[str, int] = {}
    for members in _systems(topology, tiers):
        tier = tiers[members[0]]
        used[tier] = used.get(tier, 0) + 1
        number = _FIRST_PRIVATE + tier * _NUMBERS_OF_A_TIER + used[tier]
        numbers |= dict.fromkeys(members, number)
    return numbers


def loopback(topology: Topology, switch: str) -> IPv4Address:
    """The switch's own address, which is its router id, too."""
    return IPv4Address(_LOOPBACKS + topology.switch[switch].index)


def _tiers(topology: Topology) -> dict[str, int]:
    """0 for switches with hosts, 1 for those one cable farther, and so on."""
    far = distances(topology.neighbours, topology.host)
    return {switch: far.get(switch, 1) - 1 for switch in topology.switch}


def _systems(topology: Topology, tiers: Mapping[str, int]) -> list[list[str]]:
    """The switches that share a number: those of a tier that are joined by lower ones, unless two
    of them have a cable to each other."""
    systems: dict[tuple[int, str], list[str]] = {}
    for switch, tier in tiers.items():
        below = _joined(topology, tiers, switch) if tier else [switch]
        peers = [name for name in below if tiers[name] == tier]
        alone = any(tiers[far] == tier for name in peers for far in _switches(topology, name))
        systems.setdefault((tier, switch if alone else min(peers)), []).append(switch)
    return list(systems.values())


def _joined(topology: Topology, tiers: Mapping[str, int], switch: str) -> list[str]:
    """The switches that cables join to this one without a higher tier."""
    found, new = {switch}, [switch]
    while new:
        near = {far for name in new for far in _switches(topology, name)}
        new = [name for name in near - found if tiers[name] <= tiers[switch]]
        found.update(new)
    return sorted(found)


def _switches(topology: Topology, node: str) -> list[str]:
    return [far for far in topology.neighbours[node] if far in topology.switch]
