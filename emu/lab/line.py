"""The lab's end of a conversation with its shim or its NICs, where several threads have something
to ask."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence

from emu.lab.channel import Channel
from emu.lab.messages import Json, Message, Tap
from emu.lab.processes import wait_done


class Line:
    """Asks one thing after the other."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._busy = threading.Lock()

    def ask(self, message: Message, files: Sequence[int] = ()) -> Json:
        """The value of the process's `Done`. Raises EOFError when it does not answer any more."""
        with self._busy:
            self._channel.send(message, files)
            return wait_done(self._channel)

    def tap(self, port: str, *, since_start: bool = False) -> int:
        """A socket with raw records of what passes the port, which is the caller's; `since_start`
        the kept ones, too."""
        near, far = socket.socketpair()
        with near:
            self.ask(Tap(port, since_start), [near.fileno()])
        return far.detach()

    def close(self) -> None:
        self._channel.close()
