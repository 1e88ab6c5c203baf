"""Captures a cable of a standing lab, from now on until somebody has had enough."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import BinaryIO

from emu.errors import ExitCode, FabricError
from emu.lab.standing.client import StandingLab
from emu.wire.capture import LinkType
from emu.wire.convert import capture_interface
from emu.wire.live import LiveCapture, LiveWriter

_CHUNK = 1 << 18
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def capture_port(
    lab: StandingLab,
    port: str,
    target: AbstractContextManager[BinaryIO],
    *,
    limit: int | None = None,
) -> LiveCapture:
    """Writes what passes a port until Ctrl-C, SIGTERM, or so many frames; returns what there was.

    `target` gives the stream once the lab has said that there is such a port. Frames
    that were on the way here at the end still come in. Raises UsageError when there is
    no such port, OSError when the stream takes no more, FabricError when the lab has
    ended: what there was is in the stream by then.
    """
    _, (line,) = lab.ask("tap", port=port)
    fabric, rates = lab.ports()
    linktype = LinkType.ETHERNET if fabric == "roce" else LinkType.ERF
    interface = capture_interface(port, linktype, rates[port])
    with socket.socket(fileno=line) as frames, target as stream:
        writer = LiveWriter(stream, interface, limit=limit)
        with _ended_by_signals(frames) as asked:
            while piece := frames.recv(_CHUNK):
                writer.feed(piece)
                if writer.full:
                    break
        done = writer.finish()
    if not asked.is_set() and not writer.full:
        raise FabricError(f"the lab {lab.name} has ended; {done.frames} frames are in the capture")
    return done


@contextmanager
def _ended_by_signals(frames: socket.socket) -> Iterator[threading.Event]:
    """A signal tells the other end that it is enough, and sets the event; a second one ends us.

    A thread waits for signals, so that none interrupts a write: with Python 3.11 a page
    of what a pipe was given could be lost then.
    """
    asked = threading.Event()

    def wait_for_signals() -> None:
        signal.sigwait(_SIGNALS)
        asked.set()
        with suppress(OSError):
            frames.shutdown(socket.SHUT_WR)
        signal.sigwait(_SIGNALS)
        os._exit(ExitCode.INTERRUPTED)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    threading.Thread(target=wait_for_signals, daemon=True).start()
    try:
        yield asked
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
