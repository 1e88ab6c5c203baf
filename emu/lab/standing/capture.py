"""Captures a cable of a standing lab, from now on until somebody has had enough."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import BinaryIO

from emu.errors import FabricError
from emu.lab.standing.client import StandingLab
from emu.wire.capture import LinkType
from emu.wire.convert import capture_interface
from emu.wire.live import LiveCapture, LiveWriter

_CHUNK = 1 << 18


def capture_port(
    lab: StandingLab, port: str, stream: BinaryIO, *, limit: int | None = None
) -> LiveCapture:
    """Writes what passes a port until Ctrl-C, SIGTERM, or so many frames; returns what there was.

    Frames that were on the way here at the end still come in. Raises UsageError when
    there is no such port, OSError when the stream takes no more, FabricError when
    the lab has ended: what there was is in the stream by then.
    """
    _, (line,) = lab.ask("tap", port=port)
    fabric, rates = lab.ports()
    linktype = LinkType.ETHERNET if fabric == "roce" else LinkType.ERF
    interface = capture_interface(port, linktype, rates[port])
    with socket.socket(fileno=line) as frames:
        writer = LiveWriter(stream, interface, limit=limit)
        with _ended_by_signals(frames) as asked:
            while piece := frames.recv(_CHUNK):
                writer.feed(piece)
                if writer.full:
                    break
        done = writer.finish()
    if not asked and not writer.full:
        raise FabricError(f"the lab {lab.name} has ended; {done.frames} frames are in the capture")
    return done


@contextmanager
def _ended_by_signals(frames: socket.socket) -> Iterator[list[int]]:
    """A signal tells the other end that it is enough; the list has the signals that came."""
    came: list[int] = []

    def enough(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        with suppress(OSError):
            frames.shutdown(socket.SHUT_WR)

    before = {number: signal.signal(number, enough) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
