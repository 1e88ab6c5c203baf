"""Labs and processes of labs that do not answer: the client gets an error and can continue."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emu.daemon import client, registry
from emu.daemon.client import LabClient
from emu.daemon.messages import (
    GetSnapshot,
    GetStatus,
    GetVersion,
    StartTraffic,
    TrafficStatus,
    Version,
)
from emu.daemon.registry import SilentLab
from emu.errors import FabricError
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.codec import Message, Query
from emu.lab.ipc.messages import Failure
from emu.lab.ipc.queries import GetPorts, PortsSnapshot
from emu.lab.ipc.rpc import RpcClient
from emu.lab.version import version

_STOPPED = """
import signal, sys
from emu.daemon import registry
listener = registry.claim("toy")
print("up", flush=True)
signal.pause()
"""

_ENDS_LATE = """
import sys
from emu.daemon import registry
listener = registry.claim("toy")
print("up", flush=True)
listener.accept()[0].close()
sys.stdin.read()
registry.release("toy")
"""

OURS = Version(version())


@pytest.fixture(autouse=True)
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time after which a client checks that a slow lab is alive."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setattr(client, "_SECONDS_BETWEEN_CHECKS", 0.05)


@contextmanager
def _stopped_lab(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has a lab's socket and does not answer. `words` are on its command line."""
    command = [sys.executable, "-c", _STOPPED, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("query", [GetStatus(), GetSnapshot(), StartTraffic()])
def test_a_silent_lab_is_an_error(query: Query[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The error gives the lab's name and the remedy."""
    monkeypatch.setattr(client, "_SECONDS_TO_ANSWER", 0.05)
    with _stopped_lab(), LabClient(None) as lab, pytest.raises(SilentLab) as told:
        lab.ask(query)
    assert str(told.value).startswith("the lab toy has not answered for 0.05 s: ")
    assert str(told.value).endswith("end the lab with `emu down toy`")


def test_a_slow_lab_is_waited_for() -> None:
    """The lab answers other clients meanwhile, so it is alive."""
    listener = registry.claim("toy")
    asked_for_life = threading.Event()

    def work() -> None:
        first, _ = listener.accept()
        busy = Channel(first)
        assert busy.expect(GetVersion)
        busy.send(OURS)
        second, _ = listener.accept()
        free = Channel(second)
        assert free.expect(GetVersion)
        free.send(OURS)
        asked_for_life.set()
        busy.send(TrafficStatus(number=7))

    worker = threading.Thread(target=work)
    worker.start()
    with LabClient("toy") as lab:
        assert lab.ask(StartTraffic())[0].number == 7
    worker.join()
    assert asked_for_life.is_set()
    listener.close()
    registry.release("toy")


@pytest.mark.parametrize(
    ("answer", "theirs"),
    [
        (Version("0.0.9 (code 01234567)"), "emu 0.0.9 (code 01234567); "),
        (Failure("usage", "it does not know version"), "an older emu, which does not report "),
        (Failure("fabric", "b'{}' is no message of a lab"), "an older emu, which does not "),
    ],
    ids=["another", "older than the query", "older than its type"],
)
def test_a_lab_of_another_version_is_refused(answer: Message, theirs: str) -> None:
    """The error names both versions and the remedy. The client sends no further query."""
    listener = registry.claim("toy")

    def work() -> None:
        line, _ = listener.accept()
        lab = Channel(line)
        assert lab.expect(GetVersion)
        lab.send(answer)

    worker = threading.Thread(target=work)
    worker.start()
    with LabClient("toy") as lab, pytest.raises(FabricError) as told:
        lab.ask(GetSnapshot())
    worker.join()
    assert str(told.value).startswith(f"the lab toy was brought up by {theirs}")
    assert f"this is emu {version()}, which cannot query it" in str(told.value)
    assert "end it with `emu down toy`, and bring it up again with `emu up" in str(told.value)
    listener.close()
    registry.release("toy")


def test_a_silent_lab_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner is killed, and the lab ends with its owner. Nothing is left of the lab."""
    monkeypatch.setattr(client, "_SECONDS_TO_ANSWER", 0.05)
    with _stopped_lab(client._OWNER.decode()) as owner:
        with LabClient("toy") as lab:
            lab.end()
        assert owner.wait(60) < 0
    assert (registry.names(), registry.ended()) == ([], [])


def test_down_waits_until_the_name_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner frees the name after it closes the session, so `emu down && emu up` succeeds."""
    command = [sys.executable, "-c", _ENDS_LATE, client._OWNER.decode()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdin is not None
        hurry, ends = owner.stdin, client._ends
        assert owner.stdout.readline() == b"up\n"

        def end_after_all(process: int | None, within: float) -> bool:
            hurry.close()
            return ends(process, within)

        monkeypatch.setattr(client, "_ends", end_after_all)
        with LabClient("toy") as lab:
            lab.end()
        registry.claim("toy").close()
        registry.release("toy")


@pytest.mark.parametrize("is_stopped", [False, True])
def test_an_owner_that_does_not_free_the_name_is_killed(
    is_stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first `emu down` suffices, and the next `emu status` need not wait."""
    monkeypatch.setattr(client, "_SECONDS_TO_ANSWER", 0.05)
    command = [sys.executable, "-c", _ENDS_LATE, client._OWNER.decode()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        with LabClient("toy") as lab:
            assert lab._channel.has_more(10)  # the lab has closed the session
            if is_stopped:
                owner.send_signal(signal.SIGSTOP)
            lab.end()
        assert owner.wait(60) == -signal.SIGKILL
    assert (registry.names(), registry.ended()) == ([], [])


def test_an_owner_that_cannot_be_ended_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait has a limit, and the error gives it."""
    monkeypatch.setattr(client, "_SECONDS_TO_ANSWER", 0.05)
    monkeypatch.setattr(client, "_SECONDS_TO_END", 0.05)
    monkeypatch.setattr(client, "_kill", lambda owner: None)
    command = [sys.executable, "-c", _ENDS_LATE, client._OWNER.decode()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        with LabClient("toy") as lab, pytest.raises(FabricError, match=r"after 0\.05 s$"):
            lab.end()
        owner.kill()
    registry.forget(registry.ended())


def test_a_program_that_owns_a_lab_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error gives its process number instead."""
    monkeypatch.setattr(client, "_SECONDS_TO_ANSWER", 0.05)
    with _stopped_lab() as owner:
        with (
            LabClient("toy") as lab,
            pytest.raises(FabricError, match=rf"process number {owner.pid}; end that program"),
        ):
            lab.end()
        assert owner.poll() is None


def test_a_silent_process_is_named() -> None:
    """The next query gets its own answer and not the late one."""
    near, far = channel_pair()
    process, line = Channel(far), RpcClient(near, "the shim", "toy", seconds=0.05)
    with pytest.raises(
        FabricError,
        match=r"^the shim of the lab toy has not answered for 0\.05 s: .*`emu down toy`$",
    ):
        line.ask(GetPorts())
    process.send(PortsSnapshot(1, {}))
    process.send(PortsSnapshot(2, {}))
    assert line.ask(GetPorts()) == PortsSnapshot(2, {})
    with pytest.raises(FabricError, match="has not answered"):
        line.ask(GetPorts())
    process.send(Failure("fabric", "too late"))
    process.send(PortsSnapshot(4, {}))
    assert line.ask(GetPorts()) == PortsSnapshot(4, {})
    process.close()
    line.close()
