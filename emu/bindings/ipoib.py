"""IP over InfiniBand on all hosts of a fabric (RFC 4391, datagram mode).

Every NIC has one more queue pair, for datagrams, and a table of neighbours: the LID and the queue
pair of each IP address. On a real subnet ARP over the broadcast group fills that table, with
hardware addresses of 20 bytes: queue pair and GID. Here the table is complete from the start,
since all NICs of a lab are in one process.
"""

from __future__ import annotations

from typing import Any

from emu._core import ffi, lib
from emu.errors import FabricError
from emu.spec.scenario import Spec
from emu.subnet.subnet import Subnet
from topologies.graph import Host

QKEY = 0x0B1B
"""The Q_Key of IPoIB's broadcast group in OpenSM's default partition."""


class IpInterfaces:
    """The IP interfaces of hosts' NICs, each a `struct ipoib *` of the core."""

    def __init__(self, spec: Spec, nics: dict[Host, Any], subnet: Subnet) -> None:
        """Each NIC must have its cable, and room for one more queue pair and region."""
        self._spec = spec
        self._subnet = subnet
        self.of: dict[str, Any] = {host.name: self._new(nic) for host, nic in nics.items()}
        """Host -> its interface."""
        for host in nics:
            for other in sorted(nics, key=lambda other: other.ip):
                self._introduce(host, other)

    def close(self) -> None:
        """Frees the interfaces."""
        for interface in self.of.values():
            lib.ipoib_free(interface)

    def _new(self, nic: Any) -> Any:
        config = ffi.new("struct ipoib_config *", {"mtu": self._spec.ip_mtu, "qkey": QKEY})
        interface = lib.ipoib_new(nic, config)
        _check(interface != ffi.NULL)
        return interface

    def _introduce(self, host: Host, other: Host) -> None:
        qpn = lib.ipoib_qpn(self.of[other.name])
        levels = self._subnet.levels.get(host.name, {})
        level = levels.get(other.name, self._spec.host(host.name).nic.sl)
        lid = self._subnet.lids[other.name]
        _check(lib.ipoib_add_neighbour(self.of[host.name], int(other.ip), lid, qpn, level))


def _check(done: bool) -> None:
    if not done:
        raise FabricError("the NICs could not make room for IP; make the fabric smaller")
