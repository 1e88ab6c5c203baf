"""One end of a connection between two processes of a lab, with messages over a Unix socket.

A message can carry open files, for example the memory of counters.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from emu.errors import RemoteProtocolError
from emu.lab.ipc.codec import Message, from_line, to_line
from emu.lab.ipc.files import receive
from emu.lab.ipc.messages import Failure

M = TypeVar("M")

_CHUNK = 1 << 16
_MAX_FDS = 253
"""In one piece of a stream; the kernel takes no more (unix(7), SCM_MAX_FD)."""
_CREDENTIALS = "iII"  # struct ucred: process, user, group


class Channel:
    """Sends and receives messages. Any thread may send; one may receive.

    Both raise EOFError when the other end is closed.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._sending = threading.Lock()
        self._received = bytearray()
        self._files: list[int] = []

    @staticmethod
    def inherited(fd: int) -> Channel:
        """The channel whose descriptor this process inherits from its parent."""
        os.set_inheritable(fd, False)
        return Channel(socket.socket(fileno=fd))

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        """Closes the socket and the received open files that were not taken."""
        self._socket.close()
        for file in self.take_files():
            os.close(file)

    def send(self, message: Message, files: Sequence[int] = ()) -> None:
        """Sends a message with copies of open files."""
        line = to_line(message)
        with self._sending, _gone_is_eof():
            sent = self._send_with_files(line, files)
            if sent < len(line):
                self._socket.sendall(line[sent:])

    def _send_with_files(self, line: bytes, files: Sequence[int]) -> int:
        """Sends the files, each batch but the last with one byte of the line. Returns how many
        bytes were sent."""
        sent = 0
        for first in range(0, len(files), _MAX_FDS):
            is_last = first + _MAX_FDS >= len(files)
            piece = line[sent:] if is_last else line[sent : sent + 1]
            sent += socket.send_fds(self._socket, [piece], files[first : first + _MAX_FDS])
        return sent

    def send_at_once(self, message: Message) -> None:
        """Sends the last message without blocking. Raises BlockingIOError if it does not fit.

        Part of the message may have been sent then.
        """
        line = to_line(message)
        with self._sending, _gone_is_eof():
            if self._socket.send(line, socket.MSG_DONTWAIT) < len(line):
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def receive(self, within: float | None = None) -> Message:
        """The next message. A `Failure` is raised as the error that it carries.

        Raises TimeoutError if no message arrives within so many seconds.
        """
        deadline = None if within is None else time.monotonic() + within
        while b"\n" not in self._received:
            self._wait_until(deadline)
            self._read()
        line, _, self._received = self._received.partition(b"\n")
        message = from_line(bytes(line))
        if isinstance(message, Failure):
            raise message.error()
        return message

    def has_more(self, seconds: float = 0) -> bool:
        """Whether there is a message or the other end is closed; waits up to `seconds` for that."""
        return b"\n" in self._received or bool(select.select([self._socket], [], [], seconds)[0])

    def expect(self, kind: type[M], within: float | None = None) -> M:
        """The next message. Raises RemoteProtocolError if it is of another kind.

        Raises TimeoutError as `receive` does.
        """
        message = self.receive(within)
        if not isinstance(message, kind):
            raise RemoteProtocolError(f"expected {kind.__name__}, received {message}")
        return message

    def take_files(self) -> list[int]:
        """The open files received so far. The caller must close them."""
        files, self._files = self._files, []
        return files

    def peer_pid(self) -> int:
        """The pid at the other end; of a listening socket, the pid that called listen()."""
        size = struct.calcsize(_CREDENTIALS)
        credentials = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        pid: int = struct.unpack(_CREDENTIALS, credentials)[0]
        return pid

    def _wait_until(self, deadline: float | None) -> None:
        """Waits until there is something to read, by poll: other processes may share the socket,
        so it must stay blocking."""
        if deadline is None:
            return
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError

    def _read(self) -> None:
        with _gone_is_eof():
            data, files, flags = receive(self._socket, _CHUNK, _MAX_FDS)
        if not data:
            raise EOFError
        self._received += data
        self._files += files
        if flags & socket.MSG_CTRUNC:  # the kernel drops files that this process may not have
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@contextmanager
def _gone_is_eof() -> Iterator[None]:
    try:
        yield
    except (BrokenPipeError, ConnectionResetError):
        raise EOFError from None


def channel_pair() -> tuple[Channel, socket.socket]:
    """A channel, and the far end to hand to a child process."""
    near, far = socket.socketpair()
    return Channel(near), far
