"""ERF records, which hold the packets of InfiniBand captures.

    0            8     9      10    12    14    16
    | timestamp  | type| flags| rlen| lctr| wlen| payload ...

The time stamp is 32.32 fixed-point seconds and little endian; the rest is big
endian. `wlen` is the length on the wire. `rlen` is the length of the record with the
payload padded to a multiple of eight.

Type 21 holds a packet from LRH to VCRC. Without the VCRC, Wireshark misparses it.
Type 25 holds a flow-control packet. Wireshark 4.0 first parses its six bytes as an LRH,
and calls the record malformed unless it has at least 86 bytes. Zeros therefore follow the
six bytes, and `wlen` counts them, too. A reader takes the first six bytes.

The `.erf` files of this project are pcapng files with link type ERF (197), in which each
packet is one such record. A file of bare ERF records has no interface names, directions,
packet ids, comments or magic number, and no form for an empty capture, so that Wireshark
has to guess the format. A pcapng file has all of these, and nanoseconds; Wireshark looks at
the content and not at the file's name. Inside pcapng, records are not padded to eight
bytes, as in the pcap files of capture cards. Bare files consist of `padded` records, one
after another.
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
"""This bit of the type means that an 8-byte extension header follows. The same bit in an extension
header means that another one follows."""
EXTENSION_BYTES = 8
FLOW_CONTROL_BYTES = 6

_VARYING_LENGTH = 0x04
_ALIGNMENT = 8
_QUIET_FLOW_CONTROL_BYTES = 88
"""The least multiple of eight at which tshark 4.0 does not call a flow-control record malformed."""
_NS_PER_SECOND = 1_000_000_000
_WLEN_MAX = 0xFFFF


class ErfType(IntEnum):
    """The record types that this project writes or reads (Wireshark's `wiretap/erf_record.h`)."""

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
"""Types whose payload is two bytes (offset, reserved) and a frame."""


def packet_record(packet: bytes, *, time_ns: int, original_length: int | None = None) -> bytes:
    """A type 21 record of a packet from LRH to VCRC, or of its first bytes."""
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
    """The record with the padding that it has in a bare ERF file."""
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
    """The time stamp, rounded up so that `to_nanoseconds` returns the same nanosecond."""
    return (-(-(time_ns << 32) // _NS_PER_SECOND)).to_bytes(8, "little")
