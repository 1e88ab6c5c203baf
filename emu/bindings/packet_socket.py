"""AF_PACKET sockets, for whole frames with the time at which the kernel received each."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

from emu.errors import FabricError

_ETH_P_ALL = 0x0003
_SOL_PACKET = 263  # linux/if_packet.h and asm-generic/socket.h, which Python does not have
_PACKET_AUXDATA = 8
_PACKET_QDISC_BYPASS = 20
_PACKET_IGNORE_OUTGOING = 23
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35
_SOCKET_BUFFER_BYTES = 1 << 27
_STAMP = struct.Struct("=qq")  # struct timespec
_PATIENCE_S = 10.0
_PAUSE_S = 0.0005


def packet_socket(interface: str | None = None) -> socket.socket:
    """An AF_PACKET socket in the calling thread's network namespace.

    It receives every frame that arrives at `interface`, or at any interface if that is None, and
    no frame that it sends itself. Raises FabricError if the namespace's loopback interface is down,
    or if the kernel does not stamp frames.
    """
    everything = 0 if interface else socket.htons(_ETH_P_ALL)
    with _stamped_frames():
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, everything)
        opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    opened.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
    opened.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
    _enlarge(opened, _SO_RCVBUFFORCE, socket.SO_RCVBUF)
    _enlarge(opened, _SO_SNDBUFFORCE, socket.SO_SNDBUF)
    if interface:
        opened.bind((interface, _ETH_P_ALL))
    return opened


def _enlarge(opened: socket.socket, by_force: int, within_limits: int) -> None:
    """Enlarges a buffer: as root beyond the machine's limit, otherwise up to the limit."""
    try:
        opened.setsockopt(socket.SOL_SOCKET, by_force, _SOCKET_BUFFER_BYTES)
    except PermissionError:
        opened.setsockopt(socket.SOL_SOCKET, within_limits, _SOCKET_BUFFER_BYTES)


@contextmanager
def _stamped_frames() -> Iterator[None]:
    """Waits until the kernel stamps frames when they arrive, and keeps it doing so in the body.

    It starts to do so in the background, some time after the first socket of the machine asks for
    stamps (net_enable_timestamp in net/core/dev.c). A frame that arrives earlier gets its stamp
    when a program reads it, later than the frames after it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # quick to close
        probe.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        probe.bind(("127.0.0.1", 0))
        until = time.monotonic() + _PATIENCE_S
        while not _stamped_on_arrival(probe):
            if time.monotonic() > until:
                raise FabricError(f"the kernel did not stamp frames within {_PATIENCE_S:.0f} s")
            time.sleep(_PAUSE_S)
        yield


def _stamped_on_arrival(probe: socket.socket) -> bool:
    """Whether a datagram that it sends to itself has a stamp from before it is read."""
    try:
        probe.sendto(b"?", probe.getsockname())
    except OSError as error:
        raise FabricError(
            "the loopback interface does not carry packets"
            f" ({error.strerror}); set it up with `ip link set lo up`"
        ) from error
    arrival = select.poll()
    arrival.register(probe, select.POLLIN)
    if not arrival.poll(_PATIENCE_S * 1000):
        return False
    before_reading_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
    _, controls, _, _ = probe.recvmsg(1, 256, socket.MSG_DONTWAIT)
    ((_, _, stamp),) = controls
    seconds, nanoseconds = _STAMP.unpack(stamp)
    return bool(seconds * 1_000_000_000 + nanoseconds <= before_reading_ns)
