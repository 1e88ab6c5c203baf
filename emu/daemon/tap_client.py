"""Captures a cable of a running lab until a limit, a signal or the lab's end."""

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
"""The link type of a capture; `emu.wire.erf` explains ERF on InfiniBand."""

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
    """Writes the frames at a port from now on until Ctrl-C, SIGTERM, or `limit` frames. Returns the
    result. `since_start`: whether to write the kept earlier frames first.

    `target` is opened once the lab has confirmed the port. Frames that are in the socket at
    the end are still written. Raises UsageError if there is no such port, OSError if the
    stream cannot be written, and FabricError if the lab has ended; the stream has all
    received frames then.
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
    """Captures until Ctrl-C and returns. A second Ctrl-C raises KeyboardInterrupt.

    `line`: the tap's socket, which is closed at the end. `fabric`: `roce` or `ib`. `on_begin`
    is called when Ctrl-C ends the capture.
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


@contextmanager
def _ended_by_signals(frames: socket.socket) -> Iterator[threading.Event]:
    """A signal in the body requests the other end to stop and sets the event. A second signal
    ends this process.

    A thread waits for signals, so that none interrupts a write: Python 3.11 could lose a page of
    the data written to a pipe then.
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
