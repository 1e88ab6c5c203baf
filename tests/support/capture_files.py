"""Captures for tests: whole files as bytes."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Sequence

from emu.wire.capture import Direction, Interface, LinkType
from emu.wire.pcapng import PcapngWriter
from emu.wire.raw import RAW_RECORD, RawKind

Raw = tuple[int, int, RawKind, Direction, bytes]
"""Port index, picoseconds, kind, direction, bytes."""


def pcapng(
    frames: Iterable[bytes],
    *,
    linktype: int = LinkType.ETHERNET,
    original_length: int | None = None,
) -> bytes:
    """A pcapng file with frames a microsecond apart on one interface, `leaf1:h1`."""
    stream = io.BytesIO()
    writer = PcapngWriter(stream, [Interface("leaf1:h1", linktype)])
    for n, frame in enumerate(frames):
        writer.write(frame, time_ns=n * 1000, original_length=original_length)
    return stream.getvalue()


def pcap(
    frames: Sequence[tuple[int, int, bytes]],
    *,
    order: str = "<",
    magic: int = 0xA1B2C3D4,
    linktype: int = LinkType.ETHERNET,
) -> bytes:
    """A pcap file of frames given as (seconds, fraction, bytes)."""
    header = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, linktype)
    records = (
        struct.pack(order + "IIII", seconds, fraction, len(data), len(data)) + data
        for seconds, fraction, data in frames
    )
    return header + b"".join(records)


def block(block_type: int, body: bytes, *, order: str = "<") -> bytes:
    """A pcapng block."""
    length = 12 + len(body)
    return struct.pack(order + "II", block_type, length) + body + struct.pack(order + "I", length)


def section(order: str = "<") -> bytes:
    """A pcapng section header."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order=order)


def raw_capture(records: Iterable[Raw]) -> bytes:
    """A file in the core's raw format; packet ids count from 0."""
    return b"".join(
        RAW_RECORD.pack(time_ps, n, port, len(data), len(data), kind, direction.value, 0)
        + data
        + bytes(-len(data) % 8)
        for n, (port, time_ps, kind, direction, data) in enumerate(records)
    )
