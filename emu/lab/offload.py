"""Turns off the offloads of a network interface.

A veth forwards packets without checksums, and merges several packets into one, because it expects
a kernel at the other end. The shim and the NIC process read frames there and need them
complete. This module uses the ioctl of `ethtool -K`, without a process for each interface.
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from enum import IntEnum

_SIOCETHTOOL = 0x8946
_VALUE = struct.Struct("=II")  # struct ethtool_value: command, data
_REQUEST = struct.Struct("@16sP")  # struct ifreq: interface, pointer


class _Set(IntEnum):
    """Commands of linux/ethtool.h."""

    RX_CHECKSUM = 0x15
    TX_CHECKSUM = 0x17
    TSO = 0x1F
    GSO = 0x24
    FLAGS = 0x26
    """A set of flags; one of them stores VLAN tags outside the frame."""
    GRO = 0x2C


def turn_offloads_off(interface: str) -> None:
    """Turns off all offloads on an interface of the calling thread's namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in _Set:
            value = array.array("B", _VALUE.pack(command, 0))
            address, _ = value.buffer_info()
            fcntl.ioctl(control, _SIOCETHTOOL, _REQUEST.pack(interface.encode(), address))
