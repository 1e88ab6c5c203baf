"""Writes frames to a pcapng stream as they arrive, for a reader that follows the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from emu.units import PS_PER_NS
from emu.wire.capture import Interface
from emu.wire.pcapng import PcapngWriter
from emu.wire.raw import RawKind, parse_record, whole_records, write_frame


@dataclass
class CaptureProgress:
    """The progress of a capture."""

    frames: int = 0
    missed: int = 0
    """Frames that are missing in the capture."""
    time_ns: int = 0
    """The time of the latest frame."""


class PcapngStreamWriter:
    """Takes raw records in pieces of any size. The stream is flushed after every piece."""

    def __init__(self, stream: BinaryIO, interface: Interface, *, limit: int | None = None) -> None:
        """`limit`: the most frames to write."""
        self.capture = CaptureProgress()
        self._stream = stream
        self._limit = limit
        self._pending = bytearray()
        self._writer = PcapngWriter(stream, [interface])
        stream.flush()

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return self._limit is not None and self.capture.frames >= self._limit

    def feed(self, piece: bytes) -> None:
        """Writes the frames that are complete with this piece."""
        self._pending += piece
        taken = 0
        for raw in whole_records(self._pending):
            taken += len(raw)
            self._take(raw)
        del self._pending[:taken]
        self._stream.flush()

    def finish(self) -> CaptureProgress:
        """Ends the capture with its statistics."""
        done = self.capture
        received = done.frames + done.missed
        self._writer.statistics(time_ns=done.time_ns, received=received, missed=done.missed)
        self._stream.flush()
        return done

    def _take(self, raw: bytes) -> None:
        record = parse_record(raw)
        if self.full:
            return
        if record.kind is RawKind.LOST:
            self.capture.missed += record.length
            return
        write_frame(self._writer, record)
        self.capture.frames += 1
        self.capture.time_ns = record.time_ps // PS_PER_NS
