"""The GUIDs of InfiniBand nodes, and the numbers of their ports.

switch N    0x100000 + N               its management port, port 0, has the same GUID
host N      0x200000 + 2 N             the GUID of its port is one higher
"""

from __future__ import annotations

from topologies.graph import Host, Port, Switch, Topology


def switch_guid(switch: Switch) -> int:
    return 0x100000 + switch.index


def host_guid(host: Host) -> int:
    """The GUID of the host's NIC."""
    return 0x200000 + 2 * host.index


def host_port_guid(host: Host) -> int:
    """The GUID of the NIC's port, to which the subnet manager assigns a LID."""
    return host_guid(host) + 1


def port_number(topology: Topology, port: Port) -> int:
    """A port's number in InfiniBand, where a NIC's port has number 1; in a topology it has 0."""
    return port.number + 1 if port.node in topology.host else port.number
