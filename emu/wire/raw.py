"""The records that the core's taps write, in a format that costs them little work:

    int64   time_ps                      emulated picoseconds
    uint64  packet_id                    the same packet at several taps
    uint32  port_index
    uint32  length                       on the wire
    uint32  stored                       bytes that follow
    uint8   kind                         0 Ethernet, 1 InfiniBand LRH..VCRC, 2 flow-control packet,
                                         3 no frame: `length` frames are missing here
    uint8   direction                    1 into the port, 2 out of it
    uint16  zero
    stored bytes, padded to a multiple of 8                             little endian throughout

After a run, they are in a file; from a running lab, they come over a socket. An incomplete
last record, as a killed core may leave it, is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import BinaryIO

from emu.errors import FabricError
from emu.units import PS_PER_NS
from emu.wire import erf
from emu.wire.capture import Direction, LinkType
from emu.wire.pcapng import PcapngWriter
from emu.wire.source import Damage, Source

RAW_RECORD = Struct("<qQIIIBBH")
RAW_ALIGNMENT = 8


class RawKind(IntEnum):
    """The kind of frame in a raw record."""

    ETHERNET = 0
    IB = 1
    IB_LINK = 2
    LOST = 3


@dataclass(frozen=True)
class RawRecord:
    """A frame as a tap of the core recorded it."""

    time_ps: int
    packet_id: int
    port_index: int
    length: int
    kind: RawKind
    direction: Direction
    data: bytes

    @property
    def linktype(self) -> LinkType:
        return LinkType.ETHERNET if self.kind is RawKind.ETHERNET else LinkType.ERF


def read_raw(stream: BinaryIO, name: object) -> Iterator[RawRecord]:
    """The complete records of a stream. `name` is its name in errors. Raises FabricError."""
    source = Source(stream)
    while True:
        try:
            record = _next_record(source)
        except Damage:
            return
        except ValueError as error:
            raise FabricError(
                f"{name}: offset {source.start}: no raw capture record: {error}"
            ) from error
        if record is None:
            return
        yield record


def lost_record(count: int) -> bytes:
    """The record for `count` missing frames."""
    return RAW_RECORD.pack(0, 0, 0, count, 0, RawKind.LOST, Direction.UNKNOWN.value, 0)


def write_frame(writer: PcapngWriter, record: RawRecord) -> None:
    """Adds the frame to a pcapng file, in the form of its link type."""
    time_ns = record.time_ps // PS_PER_NS
    data, length = record.data, record.length
    if record.kind is RawKind.IB:
        data = erf.packet_record(record.data, time_ns=time_ns, original_length=record.length)
        length = erf.HEADER.size + record.length
    elif record.kind is RawKind.IB_LINK:
        data = erf.flow_control_record(record.data, time_ns=time_ns)
        length = len(data)
    writer.write(
        data,
        time_ns=time_ns,
        original_length=length,
        direction=record.direction,
        packet_id=record.packet_id,
    )


def whole_records(raw: bytes | bytearray) -> Iterator[bytes]:
    """The bytes of each complete record."""
    at = 0
    while at + RAW_RECORD.size <= len(raw):
        stored = RAW_RECORD.unpack_from(raw, at)[4]
        end = at + RAW_RECORD.size + stored + -stored % RAW_ALIGNMENT
        if end > len(raw):
            return
        yield bytes(raw[at:end])
        at = end


def parse_record(raw: bytes) -> RawRecord:
    """A record from its bytes, with padding. Raises ValueError for invalid fields."""
    time_ps, packet_id, port_index, length, stored, kind, direction, _ = RAW_RECORD.unpack_from(raw)
    if time_ps < 0:
        raise ValueError(f"time {time_ps} ps is before the start")
    data = raw[RAW_RECORD.size : RAW_RECORD.size + stored]
    return RawRecord(
        time_ps, packet_id, port_index, length, RawKind(kind), Direction(direction), data
    )


def _next_record(source: Source) -> RawRecord | None:
    """The next record; None at the end. Raises Damage if the file ends inside the record, and
    ValueError for invalid fields."""
    head = source.next_item(RAW_RECORD.size)
    if head is None:
        return None
    stored = RAW_RECORD.unpack(head)[4]
    return parse_record(head + source.rest_of_item(stored + -stored % RAW_ALIGNMENT))
