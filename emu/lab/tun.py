"""TUN devices: interfaces whose IP packets a program reads and writes.

Source: Linux, Documentation/networking/tuntap.rst.
"""

from __future__ import annotations

import os
import struct
from fcntl import ioctl
from pathlib import Path

DEVICE = Path("/dev/net/tun")
REMEDY = "sudo modprobe tun; sudo chmod 666 /dev/net/tun"
"""The command that allows an ordinary user to make TUN devices."""

_TUNSETIFF, _TUNSETPERSIST = 0x400454CA, 0x400454CB  # linux/if_tun.h
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_REQUEST = struct.Struct("16sH22x")  # struct ifreq: name, flags


def plug_in(name: str) -> int:
    """Opens a device in the calling thread's namespace, and makes it if it does not exist.

    Returns a descriptor that does not block. A device made here ends with its descriptor.
    Raises OSError.
    """
    device = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        ioctl(device, _TUNSETIFF, _REQUEST.pack(name.encode(), _IFF_TUN | _IFF_NO_PI))
    except OSError:
        os.close(device)
        raise
    return device


def make(name: str) -> None:
    """Makes a device that exists as long as its namespace. Raises OSError."""
    device = plug_in(name)
    try:
        ioctl(device, _TUNSETPERSIST, 1)
    finally:
        os.close(device)
