"""Writes the frames that come from a tap's socket to a pcapng file."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import BinaryIO

from emu.fabric_kind import FABRIC_KINDS
from emu.wire.convert import LINK_TYPES, capture_interface
from emu.wire.pcapng_stream import CaptureProgress, PcapngStreamWriter

_CHUNK = 1 << 18


def capture_from_prompt(
    line: int,
    port: str,
    fabric: str,
    rate_bps: int,
    stream: BinaryIO,
    on_begin: Callable[[], None],
) -> CaptureProgress:
    """Captures until Ctrl-C and returns. A second Ctrl-C raises KeyboardInterrupt.

    `line`: the tap's socket, which is closed at the end. `fabric`: `roce` or `ib`. `on_begin`
    is called when Ctrl-C ends the capture.
    """
    with socket.socket(fileno=line) as frames:
        writer = stream_writer(port, fabric, rate_bps, stream)
        with _ended_by_ctrl_c(frames):
            on_begin()
            write_all(frames, writer)
        return writer.finish()


def stream_writer(
    port: str, fabric: str, rate_bps: int, stream: BinaryIO, *, limit: int | None = None
) -> PcapngStreamWriter:
    linktype = LINK_TYPES[FABRIC_KINDS[fabric].framing]
    return PcapngStreamWriter(stream, capture_interface(port, linktype, rate_bps), limit=limit)


def write_all(frames: socket.socket, writer: PcapngStreamWriter) -> None:
    """Writes frames up to the limit, or until the other end closes."""
    while not writer.full and (piece := frames.recv(_CHUNK)):
        writer.feed(piece)


@contextmanager
def _ended_by_ctrl_c(frames: socket.socket) -> Iterator[None]:
    """Ctrl-C in the body requests the other end to stop."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        frames.shutdown(socket.SHUT_WR)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
