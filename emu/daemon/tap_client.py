"""Captures a cable of a running lab until a limit, a signal or the lab's end."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import BinaryIO

from emu.daemon.client import LabClient
from emu.daemon.messages import Capture
from emu.errors import ExitCode, FabricError
from emu.lab.tap_frames import stream_writer, write_all
from emu.wire.pcapng_stream import CaptureProgress

_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def capture_port(
    lab: LabClient,
    port: str,
    target: AbstractContextManager[BinaryIO],
    *,
    limit: int | None = None,
    since_start: bool = False,
) -> CaptureProgress:
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
        writer = stream_writer(port, ports.fabric, ports.rates_bps[port], stream, limit=limit)
        with _ended_by_signals(frames) as stop_requested:
            write_all(frames, writer)
        done = writer.finish()
    if not stop_requested.is_set() and not writer.full:
        ended = lab.why_ended() or f"the lab {lab.name} has ended"
        raise FabricError(f"{ended}; {done.frames} frames are in the capture")
    return done


@contextmanager
def _ended_by_signals(frames: socket.socket) -> Iterator[threading.Event]:
    """A signal in the body requests the other end to stop and sets the event. A second signal
    ends this process.

    A thread waits for signals, so that none interrupts a write: Python 3.11 could lose a page of
    the data written to a pipe then.
    """
    stop_requested = threading.Event()

    def wait_for_signals() -> None:
        signal.sigwait(_SIGNALS)
        stop_requested.set()
        with suppress(OSError):
            frames.shutdown(socket.SHUT_WR)
        signal.sigwait(_SIGNALS)
        os._exit(ExitCode.INTERRUPTED)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    threading.Thread(target=wait_for_signals, daemon=True).start()
    try:
        yield stop_requested
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
