"""What a program learns of its host's NIC."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from emu._core import ffi
from emu.rdma.context import MAX_MR, MAX_QP, Context
from emu.rdma.limits import LIMITS
from topologies.guids import host_port_guid

_LINK_LOCAL = 0xFE80 << 48
_PKEY = 0xFFFF


def gid_of(context: Context) -> bytes:
    """The port's GID 0: on RoCE its IPv4 address, on InfiniBand its GUID in the default subnet."""
    if context.is_ethernet:
        return b"\0" * 10 + b"\xff\xff" + IPv4Address(context.address).packed
    return _LINK_LOCAL.to_bytes(8, "big") + host_port_guid(context.host).to_bytes(8, "big")


def device_of(context: Context) -> Any:
    """A `struct uverbs_device`."""
    cable, port = context.cable, context.port
    device = ffi.new("struct uverbs_device *")
    device.guid = host_port_guid(context.host)
    ffi.memmove(device.gid, gid_of(context), 16)
    device.network_device = port.interface.encode()
    device.is_ethernet = context.is_ethernet
    device.address = context.address
    device.pkey = _PKEY
    device.mtu = context.active_mtu
    device.rate_bps = cable.rate_bps
    device.width = cable.width
    device.max_qp, device.max_mr = MAX_QP, MAX_MR
    device.max_cqe = max(LIMITS["cqe"])
    device.max_wr = max(LIMITS["max_send_wr"])
    device.max_inline_data = max(LIMITS["max_inline_data"])
    device.default_sl = context.sl
    device.max_rd_atomic = context.max_qp_rd_atom
    return device[0]
