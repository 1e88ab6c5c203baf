"""What a host's connection manager knows of the fabric: the addresses of all hosts, and the ways to
them. It comes from the lab: nothing is asked by packets, neither ARP nor path records."""

from __future__ import annotations

from collections.abc import Collection

from emu.lab.management_network import address_of
from emu.rdma.context import Context
from emu.verbs.cm.messages import Req, SidrReq
from emu.verbs.cm.path import Path
from emu.verbs.device import nic_of

_NO_GID = bytes(16)


class HostNetwork:
    """The fabric as one host sees it."""

    def __init__(self, context: Context, all_hosts: Collection[Context]) -> None:
        self._context = context
        self._by_management = {int(address_of(one.host)): int(one.host.ip) for one in all_hosts}
        self._by_ip = {int(one.host.ip): one for one in all_hosts}
        self._by_address = {one.address: one for one in all_hosts}
        self.ip = int(context.host.ip)
        nic = nic_of(context)
        self.guid = nic.guid
        self._gid, self._pkey = nic.gid.packed, nic.pkeys[0]

    def service_level(self, address: int) -> int:
        return self._context.service_level(address)

    def fabric_ip(self, ip: int) -> int:
        """The address on the fabric of the host with the address `ip`, which may be that on the
        management network. Other addresses stay."""
        return self._by_management.get(ip, ip)

    def path_to(self, ip: int) -> Path | None:
        """The way to the host of this address on the fabric; None: there is no such host."""
        far = self._by_ip.get(ip)
        return self._path(far.address) if far else None

    def path_back(self, request: Req | SidrReq, source: int) -> Path:
        known = self._path(source)
        if not isinstance(request, Req):
            return known
        return Path(
            address=source,
            local_gid=request.remote_gid,
            remote_gid=request.local_gid,
            local_lid=request.remote_lid,
            remote_lid=request.local_lid,
            mtu=min(request.mtu, known.mtu),
            sl=known.sl,
            pkey=request.pkey,
            traffic_class=request.traffic_class,
            hop_limit=request.hop_limit,
            ack_timeout=request.ack_timeout,
        )

    def _path(self, address: int) -> Path:
        own, far = self._context, self._by_address.get(address)
        is_ethernet = own.is_ethernet
        return Path(
            address=address,
            local_gid=self._gid,
            remote_gid=nic_of(far).gid.packed if far else _NO_GID,
            local_lid=0 if is_ethernet else own.address,
            remote_lid=0 if is_ethernet else address,
            mtu=min(own.active_mtu, far.active_mtu if far else own.active_mtu),
            sl=0 if is_ethernet else own.service_level(address),
            pkey=self._pkey,
        )
