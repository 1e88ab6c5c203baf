"""The names of a lab's hosts, as lines of /etc/hosts.

    10.0.0.5     h5-eth0       the fabric, by its interface; on InfiniBand h5-ib0
    192.168.0.5  h5-mgmt h5    the management network, where there is one

A host's own name leads to its management network, as on most clusters; without one, to the fabric.
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.lab import ib0, management_network
from topologies.graph import Host, Topology


def host_lines(topology: Topology, *, is_ethernet: bool, management: bool) -> Iterator[str]:
    for host in topology.hosts:
        fabric = topology.ports[host.name][0].interface if is_ethernet else _of_ib0(host)
        if management:
            yield f"{host.ip} {fabric}"
            address = management_network.address_of(host)
            yield f"{address} {management_network.interface_of(host)} {host.name}"
        else:
            yield f"{host.ip} {fabric} {host.name}"


def _of_ib0(host: Host) -> str:
    return f"{host.name}-{ib0.NAME}"
