"""The management network of a lab: an Ethernet between the hosts, apart from the fabric.

    h1 [h1-mgmt]══╗                     the kernel's bridge; no frame of it
    h2 [h2-mgmt]══╬══ [mgmt] lab        is in the fabric
    h3 [h3-mgmt]══╝

Programs agree here by TCP on what they will do by RDMA. Their frames take real time, and no
emulated time: through the fabric they would take their place among emulated packets when this
machine gets round to them, and results would differ from run to run. On InfiniBand the hosts'
addresses of IPoIB are here, too, as the fabric carries none.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

from emu.lab.net_steps import AddAddress, AddBridge, AddVeth, NetStep, SetBridge, SetUp
from topologies.graph import Host, Topology

BRIDGE = "mgmt"
MTU = 1500
_MOST_HOSTS = 1023
"""The ports of a bridge of the kernel."""
NETWORK_PREFIX = "192.168.0.0/16"
_NETWORK = int(IPv4Address("192.168.0.0"))
_NETWORK_BITS, _IPOIB_BITS = 16, 8


def is_part_of(topology: Topology, *, exact: bool) -> bool:
    """Whether a lab for programs has a management network: on the exact clock."""
    return exact and len(topology.hosts) <= _MOST_HOSTS


def interface_of(host: Host) -> str:
    return f"{host.name}-{BRIDGE}"


def address_of(host: Host) -> IPv4Address:
    """The host's address on the management network: 192.168.0.5 for host 5."""
    return IPv4Address(_NETWORK + host.index)


def steps_of(topology: Topology, lab: str, *, ipoib: bool) -> Iterator[NetStep]:
    """The steps that connect all hosts to a bridge in the namespace `lab`. `ipoib`: whether their
    addresses of IPoIB are here."""
    yield AddBridge(lab, BRIDGE)
    yield SetUp(lab, BRIDGE)
    for host in topology.hosts:
        interface = interface_of(host)
        yield AddVeth(host.name, interface, lab, MTU)
        yield SetBridge(lab, interface, BRIDGE)
        yield SetUp(lab, interface)
        yield SetUp(host.name, interface)
        yield AddAddress(host.name, interface, str(address_of(host)), _NETWORK_BITS)
        if ipoib:
            yield AddAddress(host.name, interface, str(host.ip), _IPOIB_BITS)
