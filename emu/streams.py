"""Standard output and standard error that may be closed, full, or no longer read.

What cannot be printed ends a verb with a clear line and an exit code, in whatever library it is
printed. What cannot be said on standard error is lost: there is nobody left to tell.
"""

from __future__ import annotations

import errno
import io
import os
import sys

from emu.errors import EmuError

_IN, _OUT, _ERR = 0, 1, 2


class OutputError(EmuError):
    """Standard output takes no more."""


class ReaderGone(OutputError):
    """Whoever read it, as in `emu ... | head -1`."""


class _Stream(io.RawIOBase):
    """A descriptor that fails once at most, and swallows everything afterwards."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._failed = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]
        if self._failed:
            return view.nbytes
        try:
            return os.write(self._descriptor, view)
        except BlockingIOError:
            raise
        except OSError as error:
            self._failed = True
            if self._descriptor == _OUT:
                raise _told(error) from None
            return view.nbytes


def _told(error: OSError) -> OutputError:
    if error.errno == errno.EPIPE:
        return ReaderGone(
            "standard output: its reader has ended, so that what follows was not printed"
        )
    why = "it is closed" if error.errno == errno.EBADF else error.strerror
    return OutputError(f"standard output: {why}; what was printed is not whole")


def guard_streams() -> None:
    """Makes standard output and standard error such streams. Once in a process, at its start."""
    _open_closed_ones()
    sys.stdout, sys.stderr = _text(_OUT), _text(_ERR)


def _open_closed_ones() -> None:
    """Otherwise the next file that is opened would be taken for standard output."""
    for descriptor in (_IN, _OUT, _ERR):
        try:
            os.fstat(descriptor)
        except OSError:
            # in such a way that a use of it fails, but for what is said to nobody
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
