"""Standard output and standard error that may be closed, full, or no longer read.

A failed write to standard output ends the command with a clear line and an exit code, whichever
library wrote. A failed write to standard error is ignored, because no reader is left.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING

from emu.errors import EmuError

if TYPE_CHECKING:
    from typing_extensions import Buffer

_IN, _OUT, _ERR = 0, 1, 2


class OutputError(EmuError):
    """Standard output cannot be written to."""


class ReaderGone(OutputError):
    """The reader has ended, as in `emu ... | head -1`."""


class PatientFile(io.FileIO):
    """An open file to write to. If another program that shares the terminal or pipe has made it
    non-blocking, a write waits until there is room."""

    def __init__(self, descriptor: int, *, closefd: bool = True) -> None:
        super().__init__(descriptor, "w", closefd=closefd)

    def write(self, data: Buffer, /) -> int:
        while (written := super().write(data)) is None:
            room = select.poll()
            room.register(self, select.POLLOUT)
            room.poll()
        return written


class _Stream(PatientFile):
    """A descriptor that fails at most once, and discards everything afterwards."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, closefd=False)
        self._failed = False

    def write(self, data: Buffer, /) -> int:
        if not self._failed:
            try:
                return super().write(data)
            except OSError as error:
                self._failed = True
                if self.fileno() == _OUT:
                    raise _told(error) from None
        return memoryview(data).nbytes


def _told(error: OSError) -> OutputError:
    if error.errno == errno.EPIPE:
        return ReaderGone(
            "standard output: its reader has ended, so that what follows was not printed"
        )
    why = "it is closed" if error.errno == errno.EBADF else error.strerror
    return OutputError(f"standard output: {why}; what was printed is not whole")


def guard_streams() -> None:
    """Replaces standard output and standard error by such streams. Call once, at the start."""
    _open_closed_ones()
    sys.stdout, sys.stderr = _text(_OUT), _text(_ERR)


def _open_closed_ones() -> None:
    """Otherwise the next file that is opened would be taken for standard output."""
    for descriptor in (_IN, _OUT, _ERR):
        try:
            os.fstat(descriptor)
        except OSError:
            # standard input for writing and standard output for reading, so that using them fails
            flags = {_IN: os.O_WRONLY, _OUT: os.O_RDONLY, _ERR: os.O_WRONLY}[descriptor]
            opened = os.open(os.devnull, flags)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            os.set_inheritable(descriptor, True)


def _text(descriptor: int) -> io.TextIOWrapper:
    stream = _Stream(descriptor)
    before = sys.__stdout__ if descriptor == _OUT else sys.__stderr__
    is_error = descriptor == _ERR
    return io.TextIOWrapper(
        io.BufferedWriter(stream),
        encoding=before.encoding if before else "utf-8",
        errors="backslashreplace" if is_error or not before else before.errors,
        line_buffering=is_error or stream.isatty(),
        write_through=False,
    )


def print_note(text: str) -> None:
    """A message to the user while something works. It goes to stderr; stdout is for results."""
    print(text, file=sys.stderr, flush=True)
