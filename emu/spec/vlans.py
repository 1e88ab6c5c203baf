"""The `vlans:` section: tenants of an Ethernet fabric, each with a VLAN and routes of its own.

    vlans:
      10: h1-h4
      20: h5-h8

A host's packets reach only hosts of the same VLAN. Hosts that no VLAN lists reach each other.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from emu.spec.groups import expanded
from emu.spec.quantities import Hosts, number_key
from topologies.graph import Topology

Vid = Annotated[int, BeforeValidator(number_key), Field(ge=1, le=4094)]
"""A VLAN ID as a mapping's key."""
Vlans = dict[Vid, Hosts]
MOST_VLANS = 63
"""A switch knows so many, and one more for hosts without any (switch/vlans.h)."""
NO_VLAN = 0


def placed(vlans: Vlans, topology: Topology) -> Vlans:
    """The same with the names of hosts in place of groups."""
    return {vid: expanded(hosts, topology) for vid, hosts in vlans.items()}


def members(vlans: Vlans, topology: Topology) -> dict[int, tuple[str, ...]]:
    """The hosts of each VLAN, and those of none under NO_VLAN."""
    listed = {host for hosts in vlans.values() for host in hosts}
    return {NO_VLAN: tuple(host for host in topology.host if host not in listed), **vlans}


def vlans_of(vlans: Vlans, host: str) -> tuple[int, ...]:
    """The VLANs of a host."""
    return tuple(vid for vid, hosts in vlans.items() if host in hosts) or (NO_VLAN,)
