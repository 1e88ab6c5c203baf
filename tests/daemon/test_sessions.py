"""What the clients of a lab receive when it ends, without a lab."""

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
from emu.lab.ipc.messages import Done, Failure
from emu.lab.ipc.queries import ListFaults
from emu.lab.version import version

STATUS = Status(
    name="toy",
    spec="{}",
    slowdown=1,
    plane="shim",
    marker="none",
    notes=(),
    ip=True,
    up_seconds=1,
    traffic=TrafficStatus(),
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
    """A lab of sessions alone."""

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


def test_who_asks_later_hears_why_the_lab_has_ended(toy: Toy) -> None:
    """The reason came when nobody waited for an answer. An error is no end."""
    with LabClient(None) as lab:
        with pytest.raises(UsageError, match="what"):
            lab.ask(EndLab())
        assert lab.ask(GetPathLevels())[0] == ECHO
        toy.sessions.end(REASON)
        with pytest.raises(FabricError, match=r"^the lab toy has ended: ibsim died \(signal 9\)$"):
            lab.ask(GetPathLevels())


def test_a_capture_that_ends_with_the_lab_can_say_why(toy: Toy) -> None:
    with LabClient(None) as lab:
        assert lab.ask(GetPathLevels())[0] == ECHO
        toy.sessions.end(REASON)
        assert lab.why_ended() == REASON


def test_a_lab_that_is_up_has_not_parted(toy: Toy) -> None:
    """A program that somebody has killed is no sign of its end."""
    with LabClient(None) as lab:
        assert lab.why_ended() is None


def test_who_waits_for_an_answer_hears_why_the_lab_has_ended(toy: Toy) -> None:
    """What was asked has found that a process is gone, before anybody knew which."""

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
def test_what_is_no_message_is_answered(toy: Toy, line: bytes) -> None:
    """As an error, and the conversation goes on."""
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
    assert toy.sessions._speaking == {}


def test_files_that_come_with_a_question_are_closed(toy: Toy) -> None:
    """Nothing that a lab can be asked comes with any."""
    with LabClient(None) as lab, TemporaryFile() as file:
        lab.ask(GetPathLevels())
        for _ in range(3):
            lab._channel.send(GetPathLevels(), [file.fileno()])
            lab._channel.expect(PathLevels)
        assert _times_open(file) == 1


def test_files_that_nobody_has_taken_go_with_the_channel() -> None:
    near, far = channel_pair()
    with closing(Channel(far)) as sender, TemporaryFile() as file:
        sender.send(Done(), [file.fileno()])
        near.expect(Done)
        assert _times_open(file) == 2
        near.close()
        assert _times_open(file) == 1


def test_who_finds_no_thread_to_talk_with_is_told(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And whoever calls later is answered."""
    address = str(tmp_path / "toy")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    threading.Thread(target=serve._welcome, args=(listener, toy.sessions), daemon=True).start()

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
    """Descriptors of this process for it. Others come and go with threads."""
    found, there = os.fstat(file.fileno()), 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            there += os.path.samestat(descriptor.stat(), found)
    return there


def test_a_lab_that_says_nothing_has_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when its owner was killed."""
    near, far = channel_pair()
    monkeypatch.setattr(registry, "dial", lambda name: ("toy", near))
    far.close()
    with LabClient(None) as lab, pytest.raises(FabricError, match=r"^the lab toy has ended$"):
        lab.ask(GetPathLevels())


def test_a_lab_ends_though_somebody_reads_nothing(toy: Toy) -> None:
    """Whose buffer is full; the others are told."""
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
