"""Keeps the kernel of a host from answering packets to the emulated NIC.

RoCEv2 packets have the UDP destination port 4791. Without a socket on that port the kernel would
answer ICMP "port unreachable". A bound socket whose filter accepts no packet prevents that, and
queues nothing.
"""

from __future__ import annotations

import array
import socket
import struct

_SO_ATTACH_FILTER = 26  # asm-generic/socket.h
_RETURN_NOTHING = struct.pack("=HBBI", 0x06, 0, 0, 0)  # struct sock_filter: BPF_RET | BPF_K, 0
_PROGRAM = struct.Struct("@HP")  # struct sock_fprog: length, pointer


def hold_udp_port(port: int) -> socket.socket:
    """Occupies a UDP port in the calling thread's namespace while the returned socket is open."""
    held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    code = array.array("B", _RETURN_NOTHING)
    address, _ = code.buffer_info()
    held.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, _PROGRAM.pack(1, address))
    held.bind(("0.0.0.0", port))
    return held
