"""A standing lab as its user's commands see it."""

from __future__ import annotations

import os
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from emu.errors import FabricError
from emu.lab.messages import Ask, Done, Json
from emu.lab.standing import place


class StandingLab:
    """A conversation with a lab. Use as a context manager.

    Every question raises FabricError when the lab has ended, and UsageError for what
    the lab cannot do.
    """

    def __init__(self, name: str | None) -> None:
        """None: the only one there is. Raises UsageError when there is no such lab."""
        self.name, self._channel = place.dial(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()

    def ask(self, what: str, **options: Any) -> tuple[Json, list[int]]:
        """The answer, and the open files that came with it, which are the caller's."""
        with suppress(EOFError):  # it may have said why, before it went
            self._channel.send(Ask(what, options))
        try:
            answer = self._channel.expect(Done)
        except EOFError:
            raise FabricError(f"the lab {self.name} has ended") from None
        return answer.value, self._channel.take_files()

    def status(self) -> Json:
        return self.ask("status")[0]

    def parting(self) -> str | None:
        """What there is to say of a lab that has ended, and why if it has told; None: it is up."""
        try:
            self.status()
        except FabricError as error:
            return str(error)
        return None

    def ports(self) -> tuple[str, dict[str, int]]:
        """`roce` or `ib`, and every switch port's rate in bits/s."""
        value, _ = self.ask("ports")
        return value["fabric"], value["ports"]

    def lend(self) -> int:
        """The conversation's descriptor, which a program that we start may go on with."""
        os.set_inheritable(self._channel.fileno(), True)
        return self._channel.fileno()

    def end(self) -> None:
        """Returns when the lab is gone."""
        try:
            self._channel.send(Ask("down"))
            while True:
                self._channel.receive()
        except EOFError:
            return
