"""Probes from a place."""

from __future__ import annotations

import errno
import socket
import struct
from contextlib import suppress

from emu.lab.net_reading import interfaces
from emu.lab.netns import entered
from emu.lab.reachability.places import ICMP, Place
from emu.lab.reachability.receivers import ETHERTYPE

_ECHO_REQUEST = 8
_ECHO = struct.Struct("!BBHHH")
_NUMBER = struct.Struct("!H")
_BROADCAST = b"\xff" * 6
_LEAST_FRAME = 60


class Sender:
    """The probes of one place to all of its targets."""

    def __init__(self, place: Place, number: int, mark: bytes) -> None:
        """`number` tells the places apart, `mark` the measurements."""
        self.place = place
        self._carried = mark + _NUMBER.pack(number)
        self._connecting: dict[tuple[str, str], socket.socket] = {}
        self._mute: set[tuple[str, str]] = set()
        with entered(place.task):
            self._echoes = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for own in (self._echoes, self._udp):
            own.setblocking(False)

    def send(self, target: Place, service: str, *, mute: bool = False) -> None:
        """Sends a probe to a target. Without a route to it, nothing happens. `mute`: only connects,
        and sends nothing to the program that listens there."""
        if service == ICMP:
            with suppress(OSError):
                self._echoes.sendto(_echo_request(self._carried), (target.address, 0))
            return
        protocol, _, port = service.partition("/")
        address = (target.address, int(port))
        if protocol == "udp":
            with suppress(OSError):
                self._udp.sendto(self._carried, address)
            return
        with entered(self.place.task):
            own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        own.setblocking(False)
        if own.connect_ex(address) in (0, errno.EINPROGRESS):
            self._connecting[target.name, service] = own
            if mute:
                self._mute.add((target.name, service))
        else:
            own.close()

    def broadcast(self) -> None:
        """Sends a frame to everybody, on every interface."""
        with entered(self.place.task):
            for found in interfaces().values():
                if found.name != "lo" and found.up and found.carrier:
                    self._broadcast_on(found.name, bytes.fromhex(found.mac.replace(":", "")))

    def _broadcast_on(self, interface: str, mac: bytes) -> None:
        frame = _BROADCAST + mac + ETHERTYPE.to_bytes(2, "big") + self._carried
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as line:
            line.bind((interface, 0))
            with suppress(OSError):  # an interface without Ethernet's frames
                line.send(frame.ljust(_LEAST_FRAME, b"\0"))

    def connected(self) -> list[tuple[str, str]]:
        """The targets and services that have accepted a connection since the last call. What a
        probe carries is sent there then, unless the probe is mute."""
        found = []
        for key, own in list(self._connecting.items()):
            try:
                own.send(b"" if key in self._mute else self._carried)
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno == errno.ENOTCONN:
                    continue
            else:
                found.append(key)
            del self._connecting[key]
            own.close()
        return found

    def close(self) -> None:
        for own in (self._echoes, self._udp, *self._connecting.values()):
            own.close()


def _echo_request(data: bytes) -> bytes:
    """An ICMP echo request with its checksum (RFC 792, RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    words = struct.unpack(f"!{len(data) // 2}H", data)
    total = (_ECHO_REQUEST << 8) + sum(words)
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    head: bytes = _ECHO.pack(_ECHO_REQUEST, 0, ~total & 0xFFFF, 0, 0)
    return head + data


def sender_of(data: bytes, mark: bytes) -> int | None:
    """The number of the place that sent a probe; None: it is none of this measurement."""
    if not data.startswith(mark):
        return None
    (number,) = _NUMBER.unpack_from(data, len(mark))
    return int(number)
