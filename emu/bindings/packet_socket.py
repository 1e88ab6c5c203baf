"""AF_PACKET sockets, for whole frames with the time at which the kernel received each."""

from __future__ import annotations

import socket

_ETH_P_ALL = 0x0003
_SOL_PACKET = 263  # linux/if_packet.h and asm-generic/socket.h, which Python does not have
_PACKET_AUXDATA = 8
_PACKET_QDISC_BYPASS = 20
_PACKET_IGNORE_OUTGOING = 23
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPING = 37
_RX_SOFTWARE, _SOFTWARE = 1 << 3, 1 << 4  # linux/net_tstamp.h: SOF_TIMESTAMPING_...
_SOCKET_BUFFER_BYTES = 1 << 27


def packet_socket(interface: str | None = None) -> socket.socket:
    """An AF_PACKET socket in the calling thread's network namespace.

    It receives every frame that arrives at `interface`, or at any interface if that is None, and
    no frame that it sends itself. Frames have stamps; see `request_stamps`.
    """
    everything = 0 if interface else socket.htons(_ETH_P_ALL)
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, everything)
    opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    opened.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
    opened.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
    request_stamps(opened)
    _enlarge(opened, _SO_RCVBUFFORCE, socket.SO_RCVBUF)
    _enlarge(opened, _SO_SNDBUFFORCE, socket.SO_SNDBUF)
    if interface:
        opened.bind((interface, _ETH_P_ALL))
    return opened


def request_stamps(opened: socket.socket) -> None:
    """Requests the time of arrival with everything that the socket receives.

    The kernel begins to stamp some time after the machine's first socket asks for it, so what
    arrives first may have no stamp.
    """
    opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _RX_SOFTWARE | _SOFTWARE)


def _enlarge(opened: socket.socket, by_force: int, within_limits: int) -> None:
    """Enlarges a buffer: as root beyond the machine's limit, otherwise up to the limit."""
    try:
        opened.setsockopt(socket.SOL_SOCKET, by_force, _SOCKET_BUFFER_BYTES)
    except PermissionError:
        opened.setsockopt(socket.SOL_SOCKET, within_limits, _SOCKET_BUFFER_BYTES)
