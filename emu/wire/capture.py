"""Records and interfaces: the parts of a capture in any file format.

    reader.py      any capture file            -> Records
    pcapng.py      Interfaces and Records      -> a pcapng file
    erf.py         InfiniBand bytes            -> an ERF record, the payload of such a file
    convert.py     the core's raw capture file -> pcapng files

Times are nanoseconds since the epoch or, in captures of the emulator, of emulated time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum


class LinkType(IntEnum):
    """The link types that the readers support, with their numbers at tcpdump.org/linktypes.html."""

    NULL = 0
    ETHERNET = 1
    RAW_BSD = 12
    RAW_OPENBSD = 14
    RAW = 101
    LINUX_SLL = 113
    ERF = 197
    IPV4 = 228
    IPV6 = 229
    INFINIBAND = 247
    LINUX_SLL2 = 276


class Kind(StrEnum):
    """The kind of frame in a record."""

    ETHERNET = "ethernet"
    """An Ethernet frame from its destination MAC on."""
    IB = "ib"
    """An InfiniBand packet from LRH to VCRC."""
    IB_LINK = "ib_link"
    """The six bytes of a flow-control packet."""
    COOKED = "cooked"
    """A Linux cooked header or an IP packet, depending on the link type."""
    OTHER = "other"


class Direction(Enum):
    """The direction of a frame, as in the two low bits of pcapng's epb_flags."""

    UNKNOWN = 0
    IN = 1
    OUT = 2


@dataclass(frozen=True)
class Interface:
    """A place where packets were captured."""

    name: str
    linktype: int
    description: str = ""
    speed_bps: int = 0
    """0 if unknown."""


@dataclass(frozen=True, slots=True)
class Record:
    """One captured frame."""

    time_ns: int
    kind: Kind
    linktype: int
    data: bytes
    original_length: int
    """The length on the wire in bytes, as captures count: without preamble and FCS."""
    interface: str
    direction: Direction = Direction.UNKNOWN

    @property
    def truncated(self) -> bool:
        return len(self.data) < self.original_length
