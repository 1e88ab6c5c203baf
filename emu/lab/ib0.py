"""ib0: a host's interface for IP over InfiniBand.

Only a driver of an InfiniBand device can make an interface of the kernel's own IPoIB
type. Ours is a TUN device of that name: the kernel hands IP packets over as they are,
and the NIC process puts each into a datagram, and back.

    ping, iperf3 ── kernel ── ib0 ══ NIC process: queue pair ── h1-eth0 ══ shim

The device lives in the host's namespace whether or not a NIC process is there to serve
it; packets that nobody serves are dropped, and counted by the kernel.
"""

from __future__ import annotations

import os
import struct
from fcntl import ioctl
from pathlib import Path

from emu.errors import FabricError
from emu.lab.command import run
from topologies.graph import Host

NAME = "ib0"
ADD = ("tuntap", "add", "dev", NAME, "mode", "tun")
"""`ip` makes it with these words."""
REMEDY = "sudo modprobe tun; sudo chmod 666 /dev/net/tun"
"""What lets an ordinary user make one."""
QUEUE_PACKETS = 1000
"""That wait in the kernel for the NIC, as in front of a RoCE host's cable."""

_DEVICE = Path("/dev/net/tun")
_TUNSETIFF = 0x400454CA  # linux/if_tun.h
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_REQUEST = struct.Struct("16sH22x")  # struct ifreq: name, flags


def lines_of(host: Host, mtu: int) -> tuple[str, ...]:
    """Lines for `ip -batch` that make the interface in the host's namespace."""
    return (
        " ".join(ADD),
        f"link set {NAME} mtu {mtu} txqueuelen {QUEUE_PACKETS} up",
        f"address add {host.ip}/8 dev {NAME}",
    )


def why_missing() -> str:
    """What keeps this lab from having the interface, by trying to make one; empty: nothing."""
    try:
        run(["ip", *ADD])
    except FabricError as error:
        return str(error)
    run(["ip", "tuntap", "del", "dev", NAME, "mode", "tun"])
    return ""


def plug_in() -> int:
    """Takes the interface in the calling thread's namespace; a descriptor that does not block.

    Raises OSError.
    """
    device = os.open(_DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    ioctl(device, _TUNSETIFF, _REQUEST.pack(NAME.encode(), _IFF_TUN | _IFF_NO_PI))
    return device
