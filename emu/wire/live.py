"""Writes frames to a pcapng stream as they come, for whoever looks at it meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from emu.units import PS_PER_NS
from emu.wire.capture import Interface
from emu.wire.pcapng import PcapngWriter
from emu.wire.raw import RawKind, parse_record, whole_records, write_frame


@dataclass
class LiveCapture:
    """What a capture has come to so far."""

    frames: int = 0
    missed: int = 0
    """Frames that were there and are not in the capture."""
    time_ns: int = 0
    """Of the latest frame."""


class LiveWriter:
    """Takes raw records in pieces of any size. The stream is flushed after every piece."""

    def __init__(self, stream: BinaryIO, interface: Interface, *, limit: int | None = None) -> None:
        """`limit`: how many frames to write at most."""
        self.capture = LiveCapture()
        self._stream = stream
        self._limit = limit
        self._pending = bytearray()
        self._writer = PcapngWriter(stream, [interface])
        stream.flush()

    @property
    def full(self) -> bool:
        """Whether there are as many frames as there may be."""
        return self._limit is not None and self.capture.frames >= self._limit

    def feed(self, piece: bytes) -> None:
        """Writes the frames that are complete by now."""
        self._pending += piece
        taken = 0
        for raw in whole_records(self._pending):
            taken += len(raw)
            self._take(raw)
        del self._pending[:taken]
        self._stream.flush()

    def finish(self) -> LiveCapture:
        """Ends the capture with what it has come to."""
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
