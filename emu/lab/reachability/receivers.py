"""Sockets that wait for probes at a place. A probe has arrived when it has passed the firewall."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Iterator

from emu.lab.netns import entered
from emu.lab.reachability.places import ICMP, RAW, Place

ETHERTYPE = 0x88B5
"""IEEE Std 802, local experimental EtherType 1."""
ETHERNET_HEADER, ICMP_HEADER = 14, 8
"""Bytes."""
_MOST_BYTES = 2048


class Receiver:
    """The sockets of one place."""

    def __init__(self, place: Place, services: Iterable[str]) -> None:
        """`services`: what is to be waited for."""
        self.place = place
        self.taken: set[str] = set()
        """Services for which another program waits already."""
        self._listening: dict[str, socket.socket] = {}
        self._accepted: list[tuple[str, socket.socket]] = []
        self._datagrams: dict[str, socket.socket] = {}
        with entered(place.task):
            for service in services:
                self._open(service)

    def _open(self, service: str) -> None:
        if service == ICMP:
            own = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        elif service == RAW:
            own = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        else:
            kind = socket.SOCK_STREAM if service.startswith("tcp") else socket.SOCK_DGRAM
            own = socket.socket(socket.AF_INET, kind)
        own.setblocking(False)
        if service in (ICMP, RAW):
            self._datagrams[service] = own
        else:
            self._bind(own, service)

    def _bind(self, own: socket.socket, service: str) -> None:
        protocol, _, port = service.partition("/")
        is_tcp = protocol == "tcp"
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(is_tcp))
        try:
            own.bind((self.place.address, int(port)))
            if is_tcp:
                own.listen(socket.SOMAXCONN)
        except OSError as error:
            own.close()
            if error.errno != errno.EADDRINUSE:
                raise
            self.taken.add(service)
            return
        (self._listening if is_tcp else self._datagrams)[service] = own

    def received(self) -> Iterator[tuple[str, bytes]]:
        """What has come since the last call: services, and what the probes carried."""
        for service, own in self._datagrams.items():
            for data, sender in _waiting(own):
                if service == ICMP:
                    yield service, data[4 * (data[0] & 0xF) + ICMP_HEADER :]
                elif service != RAW:
                    yield service, data
                elif sender[2] != socket.PACKET_OUTGOING:
                    yield service, data[ETHERNET_HEADER:]
        yield from self._from_connections()

    def _from_connections(self) -> Iterator[tuple[str, bytes]]:
        for service, listener in self._listening.items():
            while (connection := _accepted(listener)) is not None:
                self._accepted.append((service, connection))
        for service, connection in list(self._accepted):
            try:
                data = connection.recv(_MOST_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            connection.close()
            self._accepted.remove((service, connection))
            yield service, data

    def close(self) -> None:
        connections = (connection for _, connection in self._accepted)
        for own in (*self._listening.values(), *self._datagrams.values(), *connections):
            own.close()


def _waiting(own: socket.socket) -> Iterator[tuple[bytes, tuple[object, ...]]]:
    """What waits in a socket, and its senders."""
    while True:
        try:
            yield own.recvfrom(_MOST_BYTES)
        except BlockingIOError:
            return


def _accepted(listener: socket.socket) -> socket.socket | None:
    try:
        connection, _ = listener.accept()
    except OSError:  # nobody waits, or has gone already
        return None
    connection.setblocking(False)
    return connection


def unique_mark() -> bytes:
    """Marks the probes of one measurement."""
    return b"emu" + os.urandom(8)
