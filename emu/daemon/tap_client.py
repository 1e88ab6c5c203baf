"""Captures a cable of a lab, from now on until somebody has had enough."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType
from typing import BinaryIO

from emu.daemon.client import LabClient
from emu.daemon.messages import Capture
from emu.errors import ExitCode, FabricError
from emu.fabric_kind import FABRIC_KINDS, Framing
from emu.wire.capture import LinkType
from emu.wire.convert import capture_interface
from emu.wire.live import LiveCapture, LiveWriter

LINK_TYPES = {Framing.ETHERNET: LinkType.ETHERNET, Framing.INFINIBAND: LinkType.ERF}
"""The link type of a capture (emu.wire.erf says why InfiniBand has ERF's)."""

_CHUNK = 1 << 18
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def capture_port(
    lab: LabClient,
    port: str,
    target: AbstractContextManager[BinaryIO],
    *,
    limit: int | None = None,
    since_start: bool = False,
) -> LiveCapture:
    """Writes what passes a port from now on until Ctrl-C, SIGTERM, or so many frames; returns what
    there was. `since_start`: after what is kept of the time before.

    `target` gives the stream once the lab has said that there is such a port. Frames
    that were on the way here at the end still come in. Raises UsageError when there is
    no such port, OSError when the stream takes no more, FabricError when the lab has
    ended: what there was is in the stream by then.
    """
    _, (line,) = lab.ask(Capture(port, since_start))
    ports = lab.ports()
    with socket.socket(fileno=line) as frames, target as stream:
        writer = _writer(port, ports.fabric, ports.rates_bps[port], stream, limit)
        with _ended_by_signals(frames) as asked:
            _write_all(frames, writer)
        done = writer.finish()
    if not asked.is_set() and not writer.full:
        ended = lab.why_ended() or f"the lab {lab.name} has ended"
        raise FabricError(f"{ended}; {done.frames} frames are in the capture")
    return done


def capture_from_prompt(
    line: int,
    port: str,
    fabric: str,
    rate_bps: int,
    stream: BinaryIO,
    on_begin: Callable[[], None],
) -> LiveCapture:
    """The same until Ctrl-C, after which the caller goes on; a second one is KeyboardInterrupt.

    `line`: the tap's socket, which is closed at the end. `fabric`: `roce` or `ib`. `on_begin`
    is called when Ctrl-C is expected.
    """
    with socket.socket(fileno=line) as frames:
        writer = _writer(port, fabric, rate_bps, stream, limit=None)
        with _ended_by_ctrl_c(frames):
            on_begin()
            _write_all(frames, writer)
        return writer.finish()


def _writer(
    port: str, fabric: str, rate_bps: int, stream: BinaryIO, limit: int | None
) -> LiveWriter:
    linktype = LINK_TYPES[FABRIC_KINDS[fabric].framing]
    return LiveWriter(stream, capture_interface(port, linktype, rate_bps), limit=limit)


def _write_all(frames: socket.socket, writer: LiveWriter) -> None:
    """Up to the limit, or until the other end has no more."""
    while not writer.full and (piece := frames.recv(_CHUNK)):
        writer.feed(piece)


@contextmanager
def _ended_by_ctrl_c(frames: socket.socket) -> Iterator[None]:
    """It tells the other end that it is enough."""

    def enough(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        frames.shutdown(socket.SHUT_WR)

    before = signal.signal(signal.SIGINT, enough)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
