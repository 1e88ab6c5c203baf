"""The management network of a lab: an Ethernet between the hosts, apart from the fabric.

    h1 [h1-mgmt]══╗                     the kernel's bridge; no frame of it
    h2 [h2-mgmt]══╬══ [mgmt] lab        is in the fabric
    h3 [h3-mgmt]══╝

Hosts that have no IP on the fabric reach each other's addresses here, as programs need it that
agree by TCP on what they will do by RDMA. It takes real time, and no emulated time.
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.lab.net_steps import AddAddress, AddBridge, AddVeth, NetStep, SetBridge, SetUp
from topologies.graph import Topology

BRIDGE = "mgmt"
MTU = 1500
MOST_HOSTS = 1023
"""The ports of a bridge of the kernel."""
_NETWORK_BITS = 8


def steps_of(topology: Topology, lab: str) -> Iterator[NetStep]:
    """The steps that connect all hosts to a bridge in the namespace `lab`."""
    yield AddBridge(lab, BRIDGE)
    yield SetUp(lab, BRIDGE)
    for host in topology.hosts:
        interface = f"{host.name}-{BRIDGE}"
        yield AddVeth(host.name, interface, lab, MTU)
        yield SetBridge(lab, interface, BRIDGE)
        yield SetUp(lab, interface)
        yield SetUp(host.name, interface)
        yield AddAddress(host.name, interface, str(host.ip), _NETWORK_BITS)
