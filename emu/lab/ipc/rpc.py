"""The lab's end of the channel to its shim or its NICs, for several threads."""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar, cast

from emu.errors import EmuError, FabricError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Query
from emu.lab.ipc.queries import Tap
from emu.lab.processes import wait_for

A = TypeVar("A")

_SECONDS_TO_ANSWER = 20.0
"""Longer than a healthy process of a lab takes."""


class RpcClient:
    """Sends one query at a time and waits for its answer."""

    def __init__(
        self, channel: Channel, name: str, lab: str, seconds: float = _SECONDS_TO_ANSWER
    ) -> None:
        """`name` and `lab`: the names of the process and of its lab, for errors. `seconds`: how
        long an answer may take."""
        self._channel = channel
        self._name = name
        self._lab = lab
        self._seconds = seconds
        self._busy = threading.Lock()
        self._expected: deque[type[object]] = deque()
        """The type of each expected answer. All but the last belong to queries that timed out."""

    def ask(self, query: Query[A], files: Sequence[int] = ()) -> A:
        """The process's answer.

        Raises EOFError if the process has ended, FabricError if it does not answer.
        """
        if not self._busy.acquire(timeout=2 * self._seconds):
            raise self._is_silent()
        try:
            self._channel.send(query, files)
            self._expected.append(query.answer_type())
            while len(self._expected) > 1:
                self._skip_late_answer()
            return cast(A, self._next_answer())
        except TimeoutError:
            raise self._is_silent() from None
        finally:
            self._busy.release()

    def _skip_late_answer(self) -> None:
        with suppress(EmuError):
            self._next_answer()
        for file in self._channel.take_files():
            os.close(file)

    def _next_answer(self) -> object:
        """The next answer. Raises TimeoutError if it is late; it stays expected then."""
        try:
            answer = wait_for(self._channel, self._expected[0], within=self._seconds)
        except EmuError:
            self._expected.popleft()
            raise
        self._expected.popleft()
        return answer

    def _is_silent(self) -> FabricError:
        return FabricError(
            f"{self._name} of the lab {self._lab} has not answered for {self._seconds:g} s: it was "
            "stopped, or the machine is overloaded; continue it (`kill -CONT`), or end the lab "
            f"with `emu down {self._lab}`"
        )

    def tap(self, port: str, *, since_start: bool = False) -> int:
        """A socket with raw records of the frames at a port, which the caller must close.

        `since_start`: also the earlier frames that were kept.
        """
        near, far = socket.socketpair()
        with near, far:
            self.ask(Tap(port, since_start), [near.fileno()])
            return far.detach()

    def close(self) -> None:
        self._channel.close()
