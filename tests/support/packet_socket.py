"""A packet socket, as a test's end of a cable."""

from __future__ import annotations

import socket

_ETH_P_ALL = 3
_SOL_PACKET, _PACKET_IGNORE_OUTGOING = 263, 23  # linux/if_packet.h


def packet_socket(interface: str) -> socket.socket:
    """A socket that sends whole frames on an interface, and receives those of the other end."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    wire.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    wire.bind((interface, _ETH_P_ALL))
    wire.settimeout(5)
    return wire
