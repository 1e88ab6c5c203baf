"""The lab's end of a conversation with its shim or its NICs, where several threads have something
to ask."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Sequence

from emu.errors import EmuError, FabricError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Json, Message, Tap
from emu.lab.processes import wait_done

_SECONDS_TO_ANSWER = 20.0
"""More than a process of a lab takes that works at all."""


class Line:
    """Asks one thing after the other."""

    def __init__(
        self, channel: Channel, name: str, lab: str, seconds: float = _SECONDS_TO_ANSWER
    ) -> None:
        """`name`: the process's, and `lab` its lab's, for errors. `seconds`: how long an answer
        may take."""
        self._channel = channel
        self._name = name
        self._lab = lab
        self._seconds = seconds
        self._busy = threading.Lock()
        self._owed = 0
        """Answers that nobody has waited for, and that come before the next one."""

    def ask(self, message: Message, files: Sequence[int] = ()) -> Json:
        """The value of the process's `Done`.

        Raises EOFError when the process is gone, FabricError when it does not answer.
        """
        if not self._busy.acquire(timeout=2 * self._seconds):
            raise self._is_silent()
        try:
            self._channel.send(message, files)
            self._owed += 1
            return self._last_answer()
        except TimeoutError:
            raise self._is_silent() from None
        finally:
            self._busy.release()

    def _last_answer(self) -> Json:
        while True:
            try:
                answer = wait_done(self._channel, within=self._seconds)
            except EmuError:
                self._owed -= 1
                if not self._owed:
                    raise
                continue
            self._owed -= 1
            if not self._owed:
                return answer
            for late in self._channel.take_files():
                os.close(late)

    def _is_silent(self) -> FabricError:
        return FabricError(
            f"{self._name} of the lab {self._lab} has not answered for {self._seconds:g} s: it was "
            "stopped, or the machine is overloaded; continue it (`kill -CONT`), or end the lab "
            f"with `emu down {self._lab}`"
        )

    def tap(self, port: str, *, since_start: bool = False) -> int:
        """A socket with raw records of what passes the port, which is the caller's; `since_start`
        the kept ones, too."""
        near, far = socket.socketpair()
        with near, far:
            self.ask(Tap(port, since_start), [near.fileno()])
            return far.detach()

    def close(self) -> None:
        self._channel.close()
