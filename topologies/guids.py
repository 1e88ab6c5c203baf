"""How InfiniBand counts: the GUIDs of nodes, and the numbers of ports.

switch N    0x100000 + N               its port 0, where management ends, has the same
host N      0x200000 + 2 N             its port: one more
"""

from __future__ import annotations

from topologies.graph import Host, Port, Switch, Topology


def switch_guid(switch: Switch) -> int:
    return 0x100000 + switch.index


def host_guid(host: Host) -> int:
    """The GUID of the host's NIC."""
    return 0x200000 + 2 * host.index


def host_port_guid(host: Host) -> int:
    """The GUID of that NIC's port, which is the one that gets a LID."""
    return host_guid(host) + 1


def port_number(topology: Topology, port: Port) -> int:
    """InfiniBand counts a NIC's ports from 1; a topology's host has port 0."""
    return port.number + 1 if port.node in topology.host else port.number
