"""Clients of a lab that ends: the messages that they receive. There is no real lab."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest

from emu.daemon import registry, serve
from emu.daemon.client import LabClient
from emu.daemon.messages import (
    EndLab,
    GetPathLevels,
    GetStatus,
    GetVersion,
    PathLevels,
    Status,
    TrafficStatus,
    Version,
)
from emu.daemon.serve import Sessions
from emu.errors import FabricError, HostError, UsageError
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.codec import Message
from emu.lab.ipc.lab_time import LabTime
from emu.lab.ipc.messages import Done, Failure
from emu.lab.ipc.queries import ListFaults
from emu.lab.version import version

STATUS = Status(
    name="toy",
    spec="{}",
    clock="real",
    time=LabTime("runs", 0),
    slowdown=1,
    plane="shim",
    marker="none",
    notes=(),
    ip=True,
    up_seconds=1,
    traffic=TrafficStatus(),
    programs={},
    stopped_programs={},
    sweeps=(),
    links=(),
)
REASON = "the lab toy has ended: ibsim died (signal 9)"


ECHO = PathLevels({"h1": {"h2": 1}})


class Server:
    """Answers a few queries. `ListFaults` finds that a process of the lab is gone."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def answer(self, query: Message) -> tuple[Message, list[int]]:
        match query:
            case GetVersion():
                return Version(version()), []
            case GetStatus():
                return STATUS, []
            case GetPathLevels():
                return ECHO, []
            case ListFaults():
                self.asked.set()
                raise EOFError
        raise UsageError("what?")


class Toy:
    """A lab that has only sessions."""

    def __init__(self) -> None:
        self.server, self.gone = Server(), threading.Event()
        self.sessions = Sessions(self.server.answer, self._wait)

    def _wait(self) -> None:
        self.gone.wait()

    def dial(self, name: str | None) -> tuple[str, Channel]:
        near, far = channel_pair()
        threading.Thread(target=self.sessions.hold, args=(Channel(far),), daemon=True).start()
        return "toy", near


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    own = Toy()
    monkeypatch.setattr(registry, "dial", own.dial)
    yield own
    own.gone.set()


def test_later_queries_get_the_reason_of_the_end(toy: Toy) -> None:
    """The reason arrives while no query is open. An error does not end the session."""
    with LabClient(None) as lab:
        with pytest.raises(UsageError, match="what"):
            lab.ask(EndLab())
        assert lab.ask(GetPathLevels())[0] == ECHO
        toy.sessions.end(REASON)
        with pytest.raises(FabricError, match=r"^the lab toy has ended: ibsim died \(signal 9\)$"):
            lab.ask(GetPathLevels())


def test_a_capture_gets_the_reason_of_the_labs_end(toy: Toy) -> None:
    with LabClient(None) as lab:
        assert lab.ask(GetPathLevels())[0] == ECHO
        toy.sessions.end(REASON)
        assert lab.why_ended() == REASON


def test_a_running_lab_has_no_reason_to_have_ended(toy: Toy) -> None:
    """A tool that ends does not mean that the lab has ended."""
    with LabClient(None) as lab:
        assert lab.why_ended() is None


def test_open_queries_get_the_reason_of_the_end(toy: Toy) -> None:
    """The query meets the missing process before the reason is known."""

    def end() -> None:
        toy.server.asked.wait()
        toy.sessions.end(REASON)

    threading.Thread(target=end, daemon=True).start()
    with (
        LabClient(None) as lab,
        pytest.raises(FabricError, match=r"^the lab toy has ended: ibsim died \(signal 9\)$"),
    ):
        lab.ask(ListFaults())


@pytest.mark.parametrize(
    "line",
    [b"hello\n", b"\xff\n", b"[]\n", b"7\n", b'{"type": "Nobody"}\n', b'{"type": "Tap"}\n'],
)
def test_a_malformed_message_is_answered_with_an_error(toy: Toy, line: bytes) -> None:
    """The session goes on."""
    near, far = socket.socketpair()
    holder = threading.Thread(target=toy.sessions.hold, args=(Channel(far),))
    holder.start()
    with closing(Channel(near)) as channel:
        near.sendall(line)
        with pytest.raises(FabricError, match=rf"^this lab runs emu {re.escape(version())}: "):
            channel.receive()
        channel.send(Failure("usage", "not mine to answer"))
        with pytest.raises(UsageError, match="not mine to answer"):
            channel.receive()
        channel.send(GetPathLevels())
        assert channel.expect(PathLevels) == ECHO
    holder.join()
    assert toy.sessions._sending == {}


def test_files_sent_with_a_query_are_closed(toy: Toy) -> None:
    """No query of a lab takes files."""
    with LabClient(None) as lab, TemporaryFile() as file:
        lab.ask(GetPathLevels())
        for _ in range(3):
            lab._channel.send(GetPathLevels(), [file.fileno()])
            lab._channel.expect(PathLevels)
        assert _times_open(file) == 1


def test_unclaimed_files_close_with_the_channel() -> None:
    near, far = channel_pair()
    with closing(Channel(far)) as sender, TemporaryFile() as file:
        sender.send(Done(), [file.fileno()])
        near.expect(Done)
        assert _times_open(file) == 2
        near.close()
        assert _times_open(file) == 1


def test_a_client_gets_an_error_if_no_thread_starts(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later clients are served."""
    address = str(tmp_path / "toy")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    threading.Thread(
        target=serve._accept_clients, args=(listener, toy.sessions), daemon=True
    ).start()

    def call() -> Channel:
        line = socket.socket(socket.AF_UNIX)
        line.connect(address)
        return Channel(line)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        with closing(call()) as channel:
            with pytest.raises(HostError, match="no more processes or threads can be started"):
                channel.receive()
            with pytest.raises(EOFError):
                channel.receive()
    with closing(call()) as channel:
        channel.send(GetPathLevels())
        assert channel.expect(PathLevels) == ECHO


def _times_open(file: IO[bytes]) -> int:
    """The number of descriptors that this process has for the file.

    Threads may open and close others.
    """
    found, there = os.fstat(file.fileno()), 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            there += os.path.samestat(descriptor.stat(), found)
    return there


def test_a_closed_session_means_that_the_lab_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed owner gives no reason."""
    near, far = channel_pair()
    monkeypatch.setattr(registry, "dial", lambda name: ("toy", near))
    far.close()
    with LabClient(None) as lab, pytest.raises(FabricError, match=r"^the lab toy has ended$"):
        lab.ask(GetPathLevels())


def test_a_lab_ends_though_a_client_does_not_read(toy: Toy) -> None:
    """The client's buffer is full. Other clients get the reason."""
    near, far = socket.socketpair()
    channel = Channel(far)
    threading.Thread(target=toy.sessions.hold, args=(channel,), daemon=True).start()
    with closing(Channel(near)) as deaf, LabClient(None) as lab:
        deaf.send(GetPathLevels())
        assert deaf.expect(PathLevels) == ECHO
        with suppress(BlockingIOError):
            while True:
                far.send(bytes(1 << 16), socket.MSG_DONTWAIT)
        ender = threading.Thread(target=toy.sessions.end, args=(REASON,), daemon=True)
        assert lab.ask(GetPathLevels())[0] == ECHO
        ender.start()
        ender.join(20)
        assert not ender.is_alive()
        with pytest.raises(FabricError, match=r"ibsim died \(signal 9\)$"):
            lab.ask(GetPathLevels())
