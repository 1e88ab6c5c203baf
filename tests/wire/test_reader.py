"""The reader: every format, byte order and resolution; damaged files, and files that are no
captures."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from emu.wire import erf
from emu.wire.capture import Direction, Kind, LinkType, Record
from emu.wire.reader import CaptureError, open_capture
from tests.support import capture_files as files
from tests.support import known_packets as vectors

FRAME = vectors.REAL_ROCE_ACK.frame
PACKET = vectors.REAL_IB_ACK.frame
CREDITS = bytes.fromhex("012324566a84")
DESCRIPTION = struct.pack("<HHI", LinkType.ETHERNET, 0, 0)


def read(tmp_path: Path, content: bytes) -> tuple[list[Record], str | None]:
    path = tmp_path / "capture"
    path.write_bytes(content)
    with open_capture(path) as capture:
        return list(capture), capture.damage


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit_ns"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1)])
def test_pcap_of_any_byte_order_and_resolution_is_read(
    tmp_path: Path, order: str, magic: int, unit_ns: int
) -> None:
    """Micro- and nanoseconds, little and big endian."""
    content = files.pcap([(2, 7, FRAME)], order=order, magic=magic)
    (record,), damage = read(tmp_path, content)
    assert (record.time_ns, record.data) == (2_000_000_000 + 7 * unit_ns, FRAME)
    assert (record.kind, record.truncated, damage) == (Kind.ETHERNET, False, None)


def test_pcap_fcs_bits_are_not_part_of_the_link_type(tmp_path: Path) -> None:
    """The upper bits of the link type describe an FCS, not another link type."""
    (record,), _ = read(tmp_path, files.pcap([(0, 0, FRAME)], linktype=0x24000001))
    assert record.linktype == LinkType.ETHERNET


@pytest.mark.parametrize(
    ("resolution", "units", "time_ns"),
    [(6, 5, 5000), (9, 5, 5), (3, 5, 5_000_000), (0x80 | 10, 1024, 1_000_000_000), (12, 5999, 5)],
)
def test_pcapng_time_resolutions_are_applied(
    tmp_path: Path, resolution: int, units: int, time_ns: int
) -> None:
    """Powers of ten and of two, coarser and finer than a nanosecond, and an offset in seconds."""
    options = struct.pack("<HHBxxx", 9, 1, resolution) + struct.pack("<HHq", 14, 8, 3)
    packet = struct.pack("<IIIII", 0, units >> 32, units, len(FRAME), len(FRAME))
    padded = FRAME + bytes(-len(FRAME) % 4)
    content = files.section() + files.block(1, DESCRIPTION + options)
    (record,), _ = read(tmp_path, content + files.block(6, packet + padded))
    assert record.time_ns == 3_000_000_000 + time_ns


def test_pcapng_of_several_sections_is_read(tmp_path: Path) -> None:
    """Each has its own byte order and interfaces; unknown blocks between them are skipped."""
    content = b""
    for order, linktype in (("<", LinkType.ETHERNET), (">", LinkType.INFINIBAND)):
        description = struct.pack(order + "HHI", linktype, 0, 0)
        packet = struct.pack(order + "IIIII", 0, 0, 9, 4, 80) + b"abcd"
        content += files.section(order) + files.block(1, description, order=order)
        content += files.block(0xBAD, b"what", order=order)
        content += files.block(6, packet, order=order)
    records, damage = read(tmp_path, content)
    assert [record.kind for record in records] == [Kind.ETHERNET, Kind.IB]
    assert [record.time_ns for record in records] == [9000, 9000]
    assert all(record.truncated for record in records)
    assert damage is None


def test_pcapng_simple_and_obsolete_blocks_are_read(tmp_path: Path) -> None:
    """A simple packet is as long as its interface's snap length allows."""
    content = files.section() + files.block(1, struct.pack("<HHI", LinkType.ETHERNET, 0, 6))
    content += files.block(3, struct.pack("<I", 100) + b"abcdef\0\0")
    content += files.block(2, struct.pack("<HHIIII", 0, 0, 0, 1, 4, 4) + b"wxyz")
    records, _ = read(tmp_path, content)
    assert [record.data for record in records] == [b"abcdef", b"wxyz"]
    assert [record.original_length for record in records] == [100, 4]


def test_interface_and_direction_come_from_pcapng(tmp_path: Path) -> None:
    """An interface without a name gets its number."""
    flags = struct.pack("<HHI", 2, 4, 2) + bytes(4)
    packet = struct.pack("<IIIII", 0, 0, 0, 4, 4) + b"abcd"
    content = files.section() + files.block(1, DESCRIPTION) + files.block(6, packet + flags)
    (record,), _ = read(tmp_path, content)
    assert (record.interface, record.direction) == ("interface 0", Direction.OUT)


def test_erf_is_read_in_pcap_in_pcapng_and_bare(tmp_path: Path) -> None:
    """InfiniBand packets and credits are the same from all three."""
    records = [
        erf.packet_record(PACKET, time_ns=1000),
        erf.flow_control_record(CREDITS, time_ns=2000),
    ]
    for content in (
        files.pcap([(0, 1, records[0]), (0, 2, records[1])], linktype=LinkType.ERF),
        files.pcapng(records, linktype=LinkType.ERF),
        b"".join(erf.padded(record) for record in records),
    ):
        (packet, credits), damage = read(tmp_path, content)
        assert (packet.kind, packet.data, packet.truncated) == (Kind.IB, PACKET, False)
        assert (credits.kind, credits.data, credits.truncated) == (Kind.IB_LINK, CREDITS, False)
        assert credits.time_ns - packet.time_ns == 1000
        assert damage is None


def test_erf_extension_headers_are_skipped(tmp_path: Path) -> None:
    """The top bit of each header says whether another follows."""
    plain = erf.packet_record(PACKET, time_ns=0)
    extended = plain[:8] + bytes([plain[8] | 0x80]) + plain[9:16]
    extended += b"\x85" + bytes(7) + b"\x05" + bytes(7) + PACKET
    (record,), _ = read(tmp_path, files.pcapng([extended], linktype=LinkType.ERF))
    assert record.data == PACKET


def test_erf_ethernet_and_padding_records_are_read(tmp_path: Path) -> None:
    """Type 2 has two bytes before the frame; type 48 has no frame."""
    ethernet = erf.HEADER.pack(bytes(8), 2, 4, 80, 0, len(FRAME)) + b"\0\0" + FRAME
    padding = erf.HEADER.pack(bytes(8), 48, 4, 16, 0, 0)
    (record,), _ = read(tmp_path, erf.padded(ethernet) + padding)
    assert (record.kind, record.data) == (Kind.ETHERNET, FRAME)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the file is empty"),
        (b"hello, world, this is no capture", "begins with 68656c6c: neither pcap, pcapng nor ERF"),
        (b"root:*:\n\x15\x00:0daemon:", "begins with 726f6f74: neither pcap, pcapng nor ERF"),
        (bytes(100), "neither pcap, pcapng nor ERF"),
        (b"\x1f\x8b\x08" + bytes(20), "unpack it first with gunzip"),
    ],
)
def test_non_capture_file_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    """With its name and the reason."""
    with pytest.raises(CaptureError, match=f"capture: .*{complaint}"):
        read(tmp_path, content)


def test_file_that_ends_in_its_header_is_empty_and_damaged(tmp_path: Path) -> None:
    """The format was recognised, so it is no error of the caller."""
    for content in (files.pcap([])[:20], files.section()[:20]):
        records, damage = read(tmp_path, content)
        assert records == []
        assert damage is not None
        assert damage.startswith("offset 0: the file ends")


def test_bad_paths_are_refused(tmp_path: Path) -> None:
    """A missing file, or a folder."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(CaptureError, match="cannot be opened"), open_capture(path):
            pass


@pytest.mark.parametrize(
    "content",
    [
        files.pcap([(0, 0, FRAME), (0, 1, FRAME)]),
        files.pcapng([FRAME, FRAME]),
        erf.padded(erf.packet_record(PACKET, time_ns=0)) * 2,
    ],
    ids=["pcap", "pcapng", "erf"],
)
def test_truncated_file_yields_its_whole_records(tmp_path: Path, content: bytes) -> None:
    """Cut anywhere in the second record: the first is there, and the damage is reported."""
    whole, _ = read(tmp_path, content)
    for cut in range(1, 40):
        records, damage = read(tmp_path, content[:-cut])
        assert records == whole[:1]
        assert damage is not None
        assert "bytes too early" in damage


@pytest.mark.parametrize(
    ("last_block", "complaint"),
    [
        (struct.pack("<III", 6, 10, 10), "a block cannot have 10 bytes"),
        (struct.pack("<III", 6, 12, 16), "12 bytes at its beginning and 16 at its end"),
        (struct.pack("<III", 6, 0xFFFFFFF0, 0), "a length of 4294967272 bytes cannot be"),
        (files.block(6, bytes(8)), "a block's body has 8 bytes, 20 are the least"),
        (files.block(6, struct.pack("<IIIII", 7, 0, 0, 0, 0)), "interface 7 was not described"),
        (files.block(6, struct.pack("<IIIII", 0, 0, 0, 99, 99)), "room for 0"),
        (struct.pack("<III", 0x0A0D0D0A, 28, 7), "byte-order magic cannot be 07000000"),
    ],
)
def test_bad_pcapng_block_stops_the_reader(
    tmp_path: Path, last_block: bytes, complaint: str
) -> None:
    """The packets before it are there; the damage has its offset and its reason."""
    before = files.pcapng([FRAME])
    records, damage = read(tmp_path, before + last_block)
    assert len(records) == 1
    assert damage is not None
    assert damage.startswith(f"offset {len(before)}: ")
    assert complaint in damage
