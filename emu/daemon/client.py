"""A standing lab as its user's commands see it."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from emu.daemon import registry
from emu.errors import FabricError, UsageError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Ask, Done, Json
from emu.lab.version import version

_AT_ONCE = ("version", "status")
_SECONDS_TO_ANSWER = 10.0
"""For what a lab answers by itself, `_AT_ONCE`."""
_SECONDS_BETWEEN_SIGNS = 10.0
"""Of life, while a lab works on an answer."""
_SECONDS_TO_END = 30.0
_OWNER = b"emu.daemon.daemon_main"


class StandingLab:
    """A conversation with a lab. Use as a context manager.

    Every question raises FabricError when the lab has ended, and UsageError for what
    the lab cannot do.
    """

    def __init__(self, name: str | None) -> None:
        """None: the only one there is.

        Raises UsageError when there is no such lab, SilentLab when it takes no calls.
        """
        self.name, self._channel = registry.dial(name)
        self._is_ours = False
        """Whether the lab is known to be of our version."""

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
        """The answer, and the open files that came with it, which are the caller's.

        An answer may take long; a lab that shows no sign of life meanwhile is a SilentLab.
        One that another version of `emu` has brought up is not asked: FabricError.
        """
        if not self._is_ours:
            self._need_our_version()
            self._is_ours = True
        return self._ask(what, **options)

    def _need_our_version(self) -> None:
        try:
            theirs = f"emu {self._ask('version')[0]['version']}"
        except UsageError:  # it does not know the question
            theirs = "an older emu, which does not tell its version"
        if theirs != f"emu {version()}":
            raise FabricError(
                f"the lab {self.name} was brought up by {theirs}; this is emu {version()}, which "
                f"cannot talk with it: end it with `emu down {self.name}`, and bring it up again "
                "with `emu up SPEC`"
            )

    def _ask(self, what: str, **options: Any) -> tuple[Json, list[int]]:
        with suppress(EOFError):  # it may have said why, before it went
            self._channel.send(Ask(what, options))
        try:
            answer = self._expect_answer(alive=what not in _AT_ONCE)
        except EOFError:
            raise FabricError(f"the lab {self.name} has ended") from None
        return answer.value, self._channel.take_files()

    def _expect_answer(self, *, alive: bool) -> Done:
        """`alive`: whether a lab that takes long is asked for a sign of life."""
        patience = _SECONDS_BETWEEN_SIGNS if alive else _SECONDS_TO_ANSWER
        while True:
            try:
                return self._channel.expect(Done, within=patience)
            except TimeoutError:
                if alive:
                    with StandingLab(self.name) as other:
                        other._need_our_version()
                    continue
                said_nothing = f"has not answered for {_SECONDS_TO_ANSWER:g} s"
                raise registry.SilentLab(self.name, said_nothing) from None

    def status(self) -> Json:
        return self.ask("status")[0]

    def parting(self) -> str | None:
        """What there is to say of a lab that has ended, and why if it has told; None: it is up."""
        try:
            self.status()
        except registry.SilentLab:
            return None
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
        """Returns when the lab is gone, and its name is free. One that does not answer is ended by
        force, and so is an owner that does not give the name of its ended lab back, as one that was
        stopped. A lab of somebody's own program has its name until the program gives it back.

        Raises FabricError.
        """
        with _owner_of(self._channel) as owner:
            try:
                self._channel.send(Ask("down"))
                while True:
                    self._channel.receive(within=_SECONDS_TO_ANSWER)
            except EOFError:
                if _ends(owner, within=_SECONDS_TO_ANSWER):
                    return
                _kill(owner)
                _wait_for_owner(self.name, owner)
            except TimeoutError:
                self._end_by_force(owner)
            registry.forget([registry.Ended(self.name, "", None)])

    def _end_by_force(self, owner: int | None) -> None:
        """Kills the owner, with which the lab ends. Returns when both are gone."""
        if owner is None:
            raise FabricError(
                f"the lab {self.name} does not answer, and belongs to the program with the process "
                f"number {self._channel.peer_pid()}; end that program, and the lab ends with it"
            )
        try:
            _kill(owner)
            while True:
                self._channel.receive(within=_SECONDS_TO_END)
        except TimeoutError:
            raise FabricError(
                f"the lab {self.name}: its owner was killed, and it goes on"
            ) from None
        except EOFError:
            _wait_for_owner(self.name, owner)


@contextmanager
def _owner_of(channel: Channel) -> Iterator[int | None]:
    """A descriptor of the process that owns a lab; None where the lab is a program's own, or the
    owner is gone."""
    pid = channel.peer_pid()
    try:
        owner = os.pidfd_open(pid)
    except OSError:  # it is gone, or in a pid namespace that cannot be seen from here
        yield None
        return
    try:
        yield owner if _OWNER in _command_of(pid) else None
    finally:
        os.close(owner)


def _command_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def _ends(owner: int | None, within: float) -> bool:
    """Whether it is gone after so many seconds; its name is given back then."""
    return owner is None or bool(select.select([owner], [], [], within)[0])


def _kill(owner: int | None) -> None:
    """Nothing where it is gone by now."""
    assert owner is not None
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(owner, signal.SIGKILL)


def _wait_for_owner(name: str, owner: int | None) -> None:
    """It was killed."""
    if not _ends(owner, within=_SECONDS_TO_END):
        raise FabricError(
            f"the lab {name} has ended, and its owner was killed and is still there after "
            f"{_SECONDS_TO_END:g} s"
        )
