"""Reads pcap files: a header of 24 bytes, then records of 16 bytes and the frame."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from emu.wire.capture import Record
from emu.wire.source import Source
from emu.wire.unwrap import kind_of

PCAP_MAGICS = {
    bytes.fromhex("a1b2c3d4"): (">", 1000),
    bytes.fromhex("d4c3b2a1"): ("<", 1000),
    bytes.fromhex("a1b23c4d"): (">", 1),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
}
"""Magic number -> byte order, and nanoseconds per unit of the time stamp's fraction."""

_FILE_HEADER_BYTES = 24
_LINKTYPE_MASK = 0x03FFFFFF
"""The bits above describe an FCS."""
_NS_PER_SECOND = 1_000_000_000


def read_pcap(source: Source) -> Iterator[Record]:
    """The records as they are in the file, with ERF headers. Raises Damage."""
    header = source.next_item(_FILE_HEADER_BYTES) or b""
    order, ns_per_unit = PCAP_MAGICS[header[:4]]
    linktype = Struct(order + "20xI").unpack(header)[0] & _LINKTYPE_MASK
    kind = kind_of(linktype)
    record_head = Struct(order + "IIII")
    while head := source.next_item(record_head.size):
        seconds, fraction, stored, original = record_head.unpack(head)
        yield Record(
            time_ns=seconds * _NS_PER_SECOND + fraction * ns_per_unit,
            kind=kind,
            linktype=linktype,
            data=source.rest_of_item(stored),
            original_length=original,
            interface="",
        )
