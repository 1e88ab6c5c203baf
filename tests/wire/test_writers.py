"""Output of the writers, read back: pcapng files and ERF records."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import LocalProtocolError
from emu.wire import erf
from emu.wire.capture import Direction, Interface, Kind, LinkType, Record
from emu.wire.pcapng import PcapngWriter
from emu.wire.reader import open_capture
from tests.support import known_packets as vectors

PACKET = vectors.REAL_IB_ACK.frame


def test_written_file_reads_back(tmp_path: Path) -> None:
    """Several interfaces of different link types, times in nanoseconds, directions, lengths."""
    path = tmp_path / "capture.pcapng"
    with path.open("wb") as stream:
        interfaces = [
            Interface("leaf1:h1", LinkType.ETHERNET, description="a port", speed_bps=10**11),
            Interface("leaf1:h2", LinkType.INFINIBAND),
        ]
        writer = PcapngWriter(stream, interfaces, comment="a test")
        writer.write(b"abc", time_ns=1, direction=Direction.IN, packet_id=2**63, comment="seen")
        writer.write(PACKET, time_ns=2**40 + 1, interface=1, original_length=4000)
    with open_capture(path) as capture:
        assert list(capture) == [
            Record(1, Kind.ETHERNET, LinkType.ETHERNET, b"abc", 3, "leaf1:h1", Direction.IN),
            Record(2**40 + 1, Kind.IB, LinkType.INFINIBAND, PACKET, 4000, "leaf1:h2"),
        ]
    assert capture.damage is None


def test_blocks_are_multiples_of_four_bytes() -> None:
    """For any lengths of frames and names."""
    for length in range(5):
        stream = io.BytesIO()
        writer = PcapngWriter(stream, [Interface("n" * length, LinkType.ETHERNET)])
        writer.write(bytes(length), time_ns=0, comment="c" * length)
        assert len(stream.getvalue()) % 4 == 0


def test_erf_record_of_a_packet_has_its_lengths() -> None:
    """Type 21, varying length, the length on the wire and of the padded record."""
    record = erf.packet_record(PACKET, time_ns=1_500_000_000)
    assert record[:8] == (3 << 31).to_bytes(8, "little")
    assert record[8:16] == bytes([21, 4, 0, 48, 0, 0, 0, 30])
    assert record[16:] == PACKET
    assert len(erf.padded(record)) == 48


def test_erf_record_of_a_cut_packet_has_the_wire_length() -> None:
    """The wire length is the whole packet's."""
    record = erf.packet_record(PACKET[:20], time_ns=0, original_length=30)
    assert record[14:16] == bytes([0, 30])


def test_erf_record_of_credits_is_long_enough_for_tshark() -> None:
    """At least 86 bytes, the flow-control packet first."""
    credits = bytes.fromhex("012324566a84")
    record = erf.flow_control_record(credits, time_ns=0)
    assert record[8] == 25
    assert record[16:22] == credits
    assert len(record) - 16 == int.from_bytes(record[14:16], "big") >= 86


def test_erf_bad_lengths_are_refused() -> None:
    """A flow-control packet has six bytes; ERF stores lengths in 16 bits."""
    with pytest.raises(LocalProtocolError, match="6 bytes, this one 5"):
        erf.flow_control_record(bytes(5), time_ns=0)
    with pytest.raises(LocalProtocolError, match="65536 bytes"):
        erf.packet_record(bytes(65536), time_ns=0)


@given(st.integers(0, 2**32 * 10**9 - 1))
def test_erf_time_stamps_keep_the_nanosecond(time_ns: int) -> None:
    """The 32.32 fixed-point second is finer than a nanosecond."""
    stamp = erf.packet_record(PACKET, time_ns=time_ns)[:8]
    assert erf.to_nanoseconds(stamp) == time_ns
