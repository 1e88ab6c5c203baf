"""Reading a capture that is still being written."""

from __future__ import annotations

import io
import struct

from emu.wire.capture import Direction, Interface, LinkType
from emu.wire.pcapng_stream import PcapngStreamWriter
from emu.wire.raw import RawKind, lost_record
from tests.support import capture_files as files

FRAME = bytes(range(60))
INTERFACE = Interface("leaf1:h1", LinkType.ETHERNET)


def _raw(count: int) -> bytes:
    rows = [(0, 1000 * n, RawKind.ETHERNET, Direction.IN, FRAME) for n in range(count)]
    return files.raw_capture(rows)


def test_frames_arrive_in_pieces_of_any_size() -> None:
    """At the end the reader has the number of frames and of missing frames."""
    out = io.BytesIO()
    writer = PcapngStreamWriter(out, INTERFACE)
    stream = _raw(2) + lost_record(7) + _raw(1)
    for byte in stream:
        writer.feed(bytes([byte]))
    done = writer.finish()
    assert (done.frames, done.missed) == (3, 7)
    statistics = out.getvalue()[-(8 + 12 + 12 + 12 + 4 + 4) :]
    kind, _, _, _, _, _, _, received, _, _, dropped = struct.unpack_from("<IIIIIHHQHHQ", statistics)
    assert (kind, received, dropped) == (5, 10, 7)


def test_limit_ends_the_output() -> None:
    """No further frame is written."""
    writer = PcapngStreamWriter(io.BytesIO(), INTERFACE, limit=2)
    writer.feed(_raw(5))
    assert writer.full
    assert writer.finish().frames == 2
