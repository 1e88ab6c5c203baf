"""The IP addressing of connections (IBTA vol 1, annex A11): services by port, addresses in private
data.

    service ID    0x0000000001 | port space 8 | port 16          (0x06: TCP, 0x11: UDP)

    private data of REQ and SIDR_REQ:
     0   | version 4+4 = 0 | IP version 4, reserved 4 | source port 16 |
     4   | source address 128; IPv4 is in the last 32 bits             |
    20   | destination address 128                                     |
    36   | the program's own                                           |

Left out: IPv6, and services outside the IP port spaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address
from struct import Struct
from typing import Self

from emu.errors import RemoteProtocolError

_PREFIX = 0x0000_0000_0100_0000
_HEADER = Struct("!BBH12x4s12x4s")
_VERSION, _IPV4 = 0, 4
HEADER_BYTES = _HEADER.size


class PortSpace(IntEnum):
    """Port spaces of IP, by their numbers in enum rdma_port_space."""

    TCP = 0x0106
    UDP = 0x0111


def service_id(space: PortSpace, port: int) -> int:
    return _PREFIX | (space & 0xFF) << 16 | port


def service_of(number: int) -> tuple[PortSpace, int] | None:
    """The port space and the port of a service ID; None for another service."""
    for space in PortSpace:
        if number & ~0xFFFF == service_id(space, 0):
            return space, number & 0xFFFF
    return None


@dataclass(frozen=True, order=True)
class Endpoint:
    """An IPv4 address and a port. 0: any."""

    ip: int = 0
    port: int = 0

    def __str__(self) -> str:
        return f"{IPv4Address(self.ip)}:{self.port}"


@dataclass(frozen=True)
class IpHeader:
    """The addresses of the two ends. The port of the destination is in the service ID."""

    source: Endpoint
    destination_ip: int

    @classmethod
    def parse(cls, private: bytes) -> Self:
        """Raises RemoteProtocolError for another version, or IPv6."""
        version, ip_version, port, source, destination = _HEADER.unpack_from(private)
        if version != _VERSION or ip_version >> 4 != _IPV4:
            raise RemoteProtocolError(
                f"a connection request by IP version {ip_version >> 4}; only IPv4 is emulated"
            )
        return cls(
            Endpoint(int.from_bytes(source), port),
            int.from_bytes(destination),
        )

    def build(self) -> bytes:
        return _HEADER.pack(
            _VERSION,
            _IPV4 << 4,
            self.source.port,
            self.source.ip.to_bytes(4),
            self.destination_ip.to_bytes(4),
        )
