"""ERF records, in which captures of InfiniBand are kept.

    0            8     9      10    12    14    16
    | timestamp  | type| flags| rlen| lctr| wlen| payload ...

The time stamp is 32.32 fixed-point seconds and little endian, the rest is big
endian. `wlen` is the length on the wire, `rlen` that of the record with the
payload padded to a multiple of eight.

Type 21 holds a packet from LRH to VCRC; without the VCRC, Wireshark misparses it.
Type 25 holds a flow-control packet. Wireshark 4.0 takes the six bytes for an LRH
before it sees that they are not, and calls the record malformed unless it has at
least 86: so zeros follow them, and `wlen` counts the zeros too. A reader takes the first six.

Our `.erf` files are pcapng files whose link type is ERF (197), each packet one such
record. A file of bare ERF records would have no interface names, no direction, no
packet ids, no comments, no form for an empty capture, and no magic number, so that
Wireshark has to guess it. A pcapng file has all of these, nanoseconds too, and
Wireshark goes by content, not by the file's name. Inside pcapng the last record's padding to
eight bytes is left out, as capture cards' pcap files do; bare files are records
`padded`, end to end.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from emu.errors import LocalProtocolError

HEADER = Struct(">8sBBHHH")
"""Timestamp (little endian, see `to_nanoseconds`), type, flags, rlen, lctr, wlen."""
TYPE_OFFSET = 8
TYPE_MASK = 0x7F
EXTENSION_FLAG = 0x80
"""Bit of the type: 8-byte extension headers follow, the same bit in each tells of another."""
EXTENSION_BYTES = 8
FLOW_CONTROL_BYTES = 6

_VARYING_LENGTH = 0x04
_ALIGNMENT = 8
_QUIET_FLOW_CONTROL_BYTES = 88
"""The least multiple of eight at which tshark 4.0 calls no flow-control record malformed."""
_NS_PER_SECOND = 1_000_000_000
_WLEN_MAX = 0xFFFF


class ErfType(IntEnum):
    """The record types that we write or read (Wireshark's `wiretap/erf_record.h`)."""

    ETH = 2
    COLOR_ETH = 11
    DSM_COLOR_ETH = 16
    COLOR_HASH_ETH = 20
    INFINIBAND = 21
    INFINIBAND_LINK = 25
    META = 27
    PAD = 48


ETHERNET_TYPES = frozenset(
    {ErfType.ETH, ErfType.COLOR_ETH, ErfType.DSM_COLOR_ETH, ErfType.COLOR_HASH_ETH}
)
"""Their payload is two bytes (offset, reserved) and the frame."""


def packet_record(packet: bytes, *, time_ns: int, original_length: int | None = None) -> bytes:
    """A type 21 record of a packet, LRH to VCRC, or of its beginning."""
    wlen = len(packet) if original_length is None else original_length
    return _header(ErfType.INFINIBAND, time_ns, stored=len(packet), wlen=wlen) + packet


def flow_control_record(packet: bytes, *, time_ns: int) -> bytes:
    """A type 25 record of a six-byte flow-control packet."""
    if len(packet) != FLOW_CONTROL_BYTES:
        raise LocalProtocolError(f"a flow-control packet has 6 bytes, this one {len(packet)}")
    payload = packet.ljust(_QUIET_FLOW_CONTROL_BYTES, b"\0")
    length = len(payload)
    return _header(ErfType.INFINIBAND_LINK, time_ns, stored=length, wlen=length) + payload


def padded(record: bytes) -> bytes:
    """The record as a bare ERF file holds it."""
    return record + bytes(-len(record) % _ALIGNMENT)


def to_nanoseconds(timestamp: bytes) -> int:
    return (int.from_bytes(timestamp, "little") * _NS_PER_SECOND) >> 32


def _header(erf_type: ErfType, time_ns: int, *, stored: int, wlen: int) -> bytes:
    if wlen > _WLEN_MAX:
        raise LocalProtocolError(f"{wlen} bytes are more than an ERF record can tell (65535)")
    rlen = HEADER.size + stored + -stored % _ALIGNMENT
    no_loss = 0
    return HEADER.pack(_timestamp(time_ns), erf_type, _VARYING_LENGTH, rlen, no_loss, wlen)


def _timestamp(time_ns: int) -> bytes:
    """Rounded up, so that rounding down gives the same nanosecond back."""
    return (-(-(time_ns << 32) // _NS_PER_SECOND)).to_bytes(8, "little")
