"""What a program learns of its host's NIC: the same as in /sys (emu.lab.rdma_sysfs)."""

from __future__ import annotations

from typing import Any

from emu import __version__
from emu._core import ffi, lib
from emu.lab.rdma_sysfs.nic import Nic, ethernet_nic, infiniband_nic
from emu.rdma.context import MAX_MR, MAX_QP, Context
from emu.rdma.limits import LIMITS

_MOST_PKEYS = lib.UVERBS_PKEYS


def device_of(context: Context) -> Any:
    """A `struct uverbs_device`."""
    nic, cable = nic_of(context), context.cable
    device = ffi.new("struct uverbs_device *")
    device.guid = nic.guid
    ffi.memmove(device.gid, nic.gid.packed, 16)
    device.network_device = context.port.interface.encode()
    device.firmware = __version__.encode()
    device.is_ethernet = nic.ethernet
    device.address = context.address
    pkeys = pkeys_of(context)
    device.pkeys[0 : len(pkeys)] = pkeys
    device.pkey_count = len(pkeys)
    device.lmc = nic.lmc
    device.vls = 0 if nic.ethernet else context.vls
    device.mtu = context.active_mtu
    device.rate_bps = cable.rate_bps
    device.width = cable.width
    device.default_sl = context.sl
    device.max_qp, device.max_mr = MAX_QP, MAX_MR
    device.max_cqe = max(LIMITS["cqe"])
    device.max_wr = max(LIMITS["max_send_wr"])
    device.max_inline_data = max(LIMITS["max_inline_data"])
    device.max_rd_atomic = context.max_qp_rd_atom
    return device[0]


def pkeys_of(context: Context) -> tuple[int, ...]:
    """The P_Key table of its port."""
    return nic_of(context).pkeys[:_MOST_PKEYS]


def nic_of(context: Context) -> Nic:
    """What /sys shows of the NIC."""
    topology, name = context.topology, context.name
    if context.is_ethernet:
        return ethernet_nic(topology, name, cpus="")
    return infiniband_nic(
        context.spec,
        topology,
        name,
        cpus="",
        lid=context.address,
        runs_manager=False,
        interface=None,
    )
