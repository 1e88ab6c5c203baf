"""Management datagrams (IBTA vol 1, 13.4): a header of 24 bytes, and here 232 bytes of data.

     0        1        2        3        4
    | version | class  | class  | method |
    |         |        | version|        |
    |      status      |    specific     |
    |           transaction ID           |
    |                                    |
    |   attribute ID   |    reserved     |
    |         attribute modifier         |
    |           data, 232 bytes          |

Left out: datagrams of several segments, and all classes but communication management.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Self

from emu._core import lib
from emu.errors import RemoteProtocolError

MAD_BYTES: int = lib.MAD_BYTES
DATA_BYTES = 232
_HEADER = Struct("!BBBBHHQHHI")
_BASE_VERSION = 1
_COMMUNICATION_MANAGEMENT, _CLASS_VERSION = 0x07, 2
_SEND = 0x03


class Attribute(IntEnum):
    """The messages of communication management (IBTA vol 1, table 424)."""

    REQ = 0x10
    MRA = 0x11
    REJ = 0x12
    REP = 0x13
    RTU = 0x14
    DREQ = 0x15
    DREP = 0x16
    SIDR_REQ = 0x17
    SIDR_REP = 0x18


@dataclass(frozen=True)
class Mad:
    """A datagram of communication management."""

    attribute: Attribute
    transaction: int
    data: bytes

    @classmethod
    def parse(cls, packet: bytes) -> Self:
        """Raises RemoteProtocolError for a datagram of another class, or one that is too short."""
        if len(packet) < MAD_BYTES:
            raise RemoteProtocolError(
                f"a management datagram of {len(packet)} bytes; all have {MAD_BYTES}"
            )
        version, kind, class_version, method, _, _, transaction, attribute, _, _ = (
            _HEADER.unpack_from(packet)
        )
        known = (_BASE_VERSION, _COMMUNICATION_MANAGEMENT, _CLASS_VERSION, _SEND)
        if (version, kind, class_version, method) != known or attribute not in set(Attribute):
            raise RemoteProtocolError(
                f"a management datagram of class {kind:#x}, version {class_version}, method "
                f"{method:#x}, attribute {attribute:#x}, which nobody here answers"
            )
        return cls(Attribute(attribute), transaction, packet[_HEADER.size : MAD_BYTES])

    def build(self) -> bytes:
        header = _HEADER.pack(
            _BASE_VERSION,
            _COMMUNICATION_MANAGEMENT,
            _CLASS_VERSION,
            _SEND,
            0,
            0,
            self.transaction,
            self.attribute,
            0,
            0,
        )
        return header + self.data.ljust(DATA_BYTES, b"\0")
