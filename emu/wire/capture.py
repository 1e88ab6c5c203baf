"""What a capture is made of, whatever its file format: records and interfaces.

    reader.py      any capture file            -> Records
    pcapng.py      Interfaces and Records      -> a pcapng file
    erf.py         InfiniBand bytes            -> an ERF record, the payload of such a file
    convert.py     the core's raw capture file -> pcapng files

Times are nanoseconds, of the epoch or, in our own captures, of emulated time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum


class LinkType(IntEnum):
    """tcpdump.org/linktypes.html; those that we know what to do with."""

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
    """What the bytes of a record begin with."""

    ETHERNET = "ethernet"
    """Destination MAC."""
    IB = "ib"
    """LRH, up to and including the VCRC."""
    IB_LINK = "ib_link"
    """The six bytes of a flow-control packet."""
    COOKED = "cooked"
    """What the link type says: a Linux cooked header, or IP at once."""
    OTHER = "other"


class Direction(Enum):
    """As the two low bits of pcapng's epb_flags."""

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
    """0: unknown."""


@dataclass(frozen=True, slots=True)
class Record:
    """One captured frame."""

    time_ns: int
    kind: Kind
    linktype: int
    data: bytes
    original_length: int
    """Bytes it had on the wire, as captures count: no preamble, no FCS."""
    interface: str
    direction: Direction = Direction.UNKNOWN

    @property
    def truncated(self) -> bool:
        return len(self.data) < self.original_length
