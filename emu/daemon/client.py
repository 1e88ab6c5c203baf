"""A client's session with a background lab."""

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
"""The time limit for `_AT_ONCE`, the queries that a lab answers without its other processes."""
_SECONDS_BETWEEN_CHECKS = 10.0
"""The interval of checks that a lab is alive while it works on an answer."""
_SECONDS_TO_END = 30.0
_OWNER = b"emu.daemon.daemon_main"


class LabIsGone(FabricError):
    """The lab has ended. The text contains the reason if it is known."""


class LabClient:
    """A session with a lab. Use as a context manager.

    Every query raises LabIsGone if the lab has ended, and UsageError if the lab refuses it.
    """

    def __init__(self, name: str | None) -> None:
        """Connects to a lab. `name` None: the only running lab.

        Raises UsageError if there is no such lab, SilentLab if it accepts no connections.
        """
        self.name, self._channel = registry.dial(name)
        self._is_our_version = False
        """Whether the lab is known to run this version of emu."""

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
        """The answer to a query, and its open files, which the caller must close.

        An answer may take long. Raises SilentLab if the lab does not respond to checks meanwhile,
        and FabricError if another version of emu runs the lab: the query is not sent then.
        """
        if not self._is_our_version:
            self._need_our_version()
            self._is_our_version = True
        return self._ask(query)

    def _need_our_version(self) -> None:
        try:
            lab_version = f"emu {self._ask(GetVersion())[0].version}"
        except (LabIsGone, registry.SilentLab):
            raise
        except EmuError:  # an older lab does not know the query, or its answer differs
            lab_version = "an older emu, which does not report its version"
        if lab_version != f"emu {version()}":
            raise FabricError(
                f"the lab {self.name} was brought up by {lab_version}; this is emu {version()}, "
                f"which cannot query it: end it with `emu down {self.name}`, and bring it up again "
                "with `emu up SPEC`"
            )

    def _ask(self, query: Query[A]) -> tuple[A, list[int]]:
        with suppress(EOFError):  # the lab may have sent the reason of its end before
            self._channel.send(query)
        try:
            answer = self._answer(query)
        except EOFError:
            raise LabIsGone(f"the lab {self.name} has ended") from None
        return answer, self._channel.take_files()

    def _answer(self, query: Query[A]) -> A:
        """Waits for the answer. While that takes long, checks that the lab is alive."""
        at_once = isinstance(query, _AT_ONCE)
        while True:
            try:
                seconds = _SECONDS_TO_ANSWER if at_once else _SECONDS_BETWEEN_CHECKS
                return receive_answer(self._channel, query, seconds)
            except TimeoutError:
                if at_once:
                    silent = f"has not answered for {_SECONDS_TO_ANSWER:g} s"
                    raise registry.SilentLab(self.name, silent) from None
            with LabClient(self.name) as other:
                other._need_our_version()

    def status(self) -> Status:
        return self.ask(GetStatus())[0]

    def why_ended(self) -> str | None:
        """The message that the lab has ended, with the reason if known; None: it is up."""
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
        """The session's descriptor, for a child process that continues the session."""
        os.set_inheritable(self._channel.fileno(), True)
        return self._channel.fileno()

    def end(self) -> None:
        """Ends the lab. Returns when it has ended and its name is free. Raises FabricError.

        A lab that does not answer is killed, and so is a stopped owner that does not release the
        name of its ended lab. A lab that another program owns keeps its name until that program
        releases it.
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
        """Kills the owner, and thereby the lab. Returns when both have ended."""
        if owner is None:
            raise FabricError(
                f"the lab {self.name} does not answer, but it belongs to the program with the "
                f"process number {self._channel.peer_pid()}; end that program, and the lab ends "
                "with it"
            )
        try:
            _kill(owner)
            while True:
                self._channel.receive(within=_SECONDS_TO_END)
        except TimeoutError:
            raise FabricError(
                f"the lab {self.name} still runs, though its owner was killed"
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
    """A pidfd of a lab's owner process; None if another program owns the lab, or the owner has
    ended."""
    pid = channel.peer_pid()
    try:
        owner = os.pidfd_open(pid)
    except OSError:  # it has ended, or is in an unreachable pid namespace
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
    """Whether the owner ends within so many seconds; it has released the name then."""
    return owner is None or bool(select.select([owner], [], [], within)[0])


def _kill(owner: int | None) -> None:
    """Kills the owner, if it has not ended."""
    assert owner is not None
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(owner, signal.SIGKILL)


def _wait_for_owner(name: str, owner: int | None) -> None:
    """Waits until a killed owner has ended."""
    if not _ends(owner, within=_SECONDS_TO_END):
        raise FabricError(
            f"the lab {name} has ended, but its owner, which was killed, still exists after "
            f"{_SECONDS_TO_END:g} s"
        )
