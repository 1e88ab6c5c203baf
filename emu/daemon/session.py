"""A session with a lab over a channel that is there already: for the lab's own processes."""

from __future__ import annotations

from typing import Protocol, TypeVar

from emu.daemon.client import LabIsGone, receive_answer
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Query

A = TypeVar("A")


class Asks(Protocol):
    """Sends queries to a lab."""

    def ask(self, query: Query[A]) -> tuple[A, list[int]]:
        """The answer, and its open files, which the caller must close."""


class LabSession:
    """A session of one of the lab's own processes."""

    def __init__(self, lab: Channel) -> None:
        self._lab = lab

    def ask(self, query: Query[A]) -> tuple[A, list[int]]:
        """Raises LabIsGone if the lab has ended."""
        try:
            self._lab.send(query)
            answer = receive_answer(self._lab, query)
        except EOFError:
            raise LabIsGone("the lab has ended") from None
        return answer, self._lab.take_files()
