"""No input crashes the reader, `inspect` or the layers."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.wire import erf
from emu.wire.capture import Kind, LinkType, Record
from emu.wire.inspect import inspect
from emu.wire.layers.dissect import dissect
from emu.wire.reader import CaptureError
from tests.support import capture_files as files
from tests.support import known_packets as vectors

LINKTYPES = sorted(LinkType)
NATIVE = [erf.packet_record(v.frame, time_ns=7) for v in vectors.NATIVE]
CREDITS = erf.flow_control_record(bytes.fromhex("012324566a84"), time_ns=9)
CAPTURES = [
    files.pcapng([v.frame for v in vectors.ALL]),
    files.pcapng([*NATIVE, CREDITS], linktype=LinkType.ERF),
    files.pcap([(1, 2, v.frame) for v in vectors.ALL]),
    files.pcap([(1, 2, record) for record in NATIVE], linktype=LinkType.ERF, order=">"),
    b"".join(erf.padded(record) for record in (*NATIVE, CREDITS)),
]
FRAMES = [vector.frame for vector in vectors.ALL]


@pytest.fixture(scope="module")
def capture_file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "capture"


@st.composite
def damaged(draw: st.DrawFn, originals: list[bytes]) -> bytes:
    """One of the originals with a few bytes overwritten, and perhaps truncated."""
    data = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 8))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


def _inspect(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with contextlib.suppress(CaptureError):
        found = inspect(path)
        assert found.frames >= found.truncated >= 0
        found.to_json()


@settings(max_examples=400)
@given(content=damaged(CAPTURES))
def test_damaged_capture_is_counted_or_refused(capture_file: Path, content: bytes) -> None:
    """For any overwritten or missing bytes, the result is a count or a CaptureError."""
    _inspect(capture_file, content)


@settings(max_examples=200)
@given(
    beginning=st.sampled_from([c[:n] for c in CAPTURES for n in (0, 4, 24, 60)]), rest=st.binary()
)
def test_garbage_after_any_beginning_is_refused_or_read(
    capture_file: Path, beginning: bytes, rest: bytes
) -> None:
    """Garbage that begins like a capture, or does not."""
    _inspect(capture_file, beginning + rest)


@settings(max_examples=400)
@given(frame=damaged(FRAMES) | st.binary(max_size=80), linktype=st.sampled_from(LINKTYPES))
def test_damaged_frame_crashes_no_parser(capture_file: Path, frame: bytes, linktype: int) -> None:
    """In an intact file, for every link type."""
    _inspect(capture_file, files.pcapng([frame], linktype=linktype))


@settings(max_examples=200)
@given(
    frame=damaged(FRAMES) | st.binary(max_size=80),
    captured_as=st.sampled_from(
        [
            (Kind.ETHERNET, LinkType.ETHERNET),
            (Kind.IB, LinkType.INFINIBAND),
            (Kind.IB_LINK, LinkType.ERF),
            (Kind.COOKED, LinkType.IPV4),
        ]
    ),
)
def test_dissection_keeps_all_bytes(frame: bytes, captured_as: tuple[Kind, LinkType]) -> None:
    """scapy layers of damaged frames are built into the same bytes again."""
    kind, linktype = captured_as
    assert bytes(dissect(Record(0, kind, linktype, frame, len(frame), ""))) == frame
