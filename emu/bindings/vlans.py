"""The VLANs of a fabric, handed over to the switches with hosts."""

from __future__ import annotations

from typing import Any

from emu._core import ffi, lib
from emu.errors import FabricError
from emu.spec.scenario import Spec
from emu.spec.vlans import members, vlans_of
from topologies.graph import Switch, Topology


def add_vlans(core: Any, spec: Spec, topology: Topology, switch: Switch) -> None:
    """Gives a switch the VLANs of its ports to hosts. `core`: the switch. Raises FabricError: no
    memory."""
    to_hosts = {
        port: topology.peer[port].node
        for port in topology.ports[switch.name]
        if topology.peer[port].node in topology.host
    }
    own = {host: vlans_of(spec.vlans, host) for host in to_hosts.values()}
    needed = {vid for vids in own.values() for vid in vids}
    for vid, hosts in members(spec.vlans, topology).items():
        if vid in needed:
            addresses = ffi.new("uint16_t[]", [topology.addresses[host] for host in hosts])
            _have_memory(lib.switch_add_vlan(core, vid, addresses, len(hosts)))
    for port, host in to_hosts.items():
        for vid in own[host]:
            _have_memory(lib.switch_join_vlan(core, port.number, vid))


def _have_memory(done: bool) -> None:
    if not done:
        raise FabricError("no memory for the VLANs of a switch")
