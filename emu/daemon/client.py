"""A lab in the background as its user's commands see it."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from emu.daemon import registry
from emu.daemon.messages import EndLab, GetStatus, GetVersion, LabEnded, ListPorts, Ports, Status
from emu.errors import EmuError, FabricError, RemoteProtocolError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Query
from emu.lab.version import version

A = TypeVar("A")

_AT_ONCE = (GetVersion, GetStatus)
_SECONDS_TO_ANSWER = 10.0
"""For queries that a lab answers without its processes, `_AT_ONCE`."""
_SECONDS_BETWEEN_SIGNS = 10.0
"""Of life, while a lab works on an answer."""
_SECONDS_TO_END = 30.0
_OWNER = b"emu.daemon.daemon_main"


class LabIsGone(FabricError):
    """The lab has ended; the text says why, if that is known."""


class LabClient:
    """A session with a lab. Use as a context manager.

    Every query raises LabIsGone when the lab has ended, and UsageError when the lab refuses it.
    """

    def __init__(self, name: str | None) -> None:
        """None: the only lab that is up.

        Raises UsageError when there is no such lab, SilentLab when it takes no calls.
        """
        self.name, self._channel = registry.dial(name)
        self._is_ours = False
        """Whether the lab is known to run our version."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()

    def ask(self, query: Query[A]) -> tuple[A, list[int]]:
        """The answer, and the open files that came with it, which the caller must close.

        An answer may take long. Raises SilentLab if the lab shows no sign of life meanwhile, and
        FabricError if another version of emu has brought it up: the query is not sent then.
        """
        if not self._is_ours:
            self._need_our_version()
            self._is_ours = True
        return self._ask(query)

    def _need_our_version(self) -> None:
        try:
            theirs = f"emu {self._ask(GetVersion())[0].version}"
        except (LabIsGone, registry.SilentLab):
            raise
        except EmuError:  # it does not know the query, or its answer differs from ours
            theirs = "an older emu, which does not report its version"
        if theirs != f"emu {version()}":
            raise FabricError(
                f"the lab {self.name} was brought up by {theirs}; this is emu {version()}, which "
                f"cannot talk with it: end it with `emu down {self.name}`, and bring it up again "
                "with `emu up SPEC`"
            )

    def _ask(self, query: Query[A]) -> tuple[A, list[int]]:
        with suppress(EOFError):  # it may have sent the reason of its end before
            self._channel.send(query)
        try:
            answer = self._answer(query)
        except EOFError:
            raise LabIsGone(f"the lab {self.name} has ended") from None
        return answer, self._channel.take_files()

    def _answer(self, query: Query[A]) -> A:
        """A lab that works on an answer for long is asked for a sign of life meanwhile."""
        at_once = isinstance(query, _AT_ONCE)
        while True:
            try:
                patience = _SECONDS_TO_ANSWER if at_once else _SECONDS_BETWEEN_SIGNS
                return receive_answer(self._channel, query, patience)
            except TimeoutError:
                if at_once:
                    silent = f"has not answered for {_SECONDS_TO_ANSWER:g} s"
                    raise registry.SilentLab(self.name, silent) from None
            with LabClient(self.name) as other:
                other._need_our_version()

    def status(self) -> Status:
        return self.ask(GetStatus())[0]

    def why_ended(self) -> str | None:
        """That the lab has ended, and why if that is known; None: it is up."""
        try:
            self.status()
        except registry.SilentLab:
            return None
        except FabricError as error:
            return str(error)
        return None

    def ports(self) -> Ports:
        return self.ask(ListPorts())[0]

    def lend(self) -> int:
        """The session's descriptor, for a program that we start and that continues the session."""
        os.set_inheritable(self._channel.fileno(), True)
        return self._channel.fileno()

    def end(self) -> None:
        """Returns when the lab is gone and its name is free. Raises FabricError.

        A lab that does not answer is ended by force. So is an owner that does not give back the
        name of its ended lab, because it was stopped. A lab that belongs to another program keeps
        its name until that program gives it back.
        """
        with _owner_of(self._channel) as owner:
            try:
                self._channel.send(EndLab())
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


def receive_answer(channel: Channel, query: Query[A], within: float | None = None) -> A:
    """The answer to a query that was sent. Raises TimeoutError, LabIsGone."""
    answer = channel.receive(within)
    if isinstance(answer, LabEnded):
        raise LabIsGone(answer.reason)
    if not isinstance(answer, query.answer_type()):
        raise RemoteProtocolError(f"the lab answered {answer} to {query}")
    return answer


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
