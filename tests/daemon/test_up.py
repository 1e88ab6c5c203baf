"""`emu up` that is interrupted at any stage leaves no lab, no process and no name."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from emu.daemon import daemon_main, registry, up
from emu.daemon.up import bring_up
from emu.errors import ExitCode, HostError
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.jobs import ServeLab
from emu.lab.ipc.messages import Progress, Up
from emu.spec.load import spec_from_text
from tests.support.background_lab import OWNER, assert_gone, at_home, owner_of_lab
from tests.support.traces import Inside
from tests.support.user import SECONDS, User, wait

SPEC = """
name: pair
slowdown: 500
topology: {kind: dumbbell, hosts_per_side: 1}
switches: {pfc: {}}
"""


@pytest.fixture
def me(myself: User) -> User:
    return at_home(myself)


def _job() -> ServeLab:
    spec = spec_from_text(SPEC.encode(), source="pair.emu.yml")
    return ServeLab(spec.to_json(), 500.0)


@contextmanager
def _owner(user: User) -> Iterator[tuple[subprocess.Popen[bytes], Channel]]:
    """An owner process as `emu up` starts it, and the channel to it.

    The process is killed afterwards.
    """
    channel, far = channel_pair()
    with far:
        process = subprocess.Popen(
            [*user.prefix, sys.executable, "-m", OWNER, str(far.fileno())],
            cwd=user.home,
            env=os.environ | user.environment,
            pass_fds=[far.fileno()],
            start_new_session=True,
        )
    with closing(channel), process:
        try:
            yield process, channel
        finally:
            process.kill()


def _assert_no_trace(user: User) -> None:
    """Assert that there is neither a lab nor a record of an ended one."""
    told = json.loads(user.run_emu("status", "--json").out)
    assert (told["labs"], told["ended"]) == ([], [])
    assert not (user.home / "runtime" / "emu").exists()


def _until(channel: Channel, kind: type[Progress | Up]) -> None:
    while not isinstance(channel.receive(within=SECONDS), kind):
        pass


def test_an_owner_without_a_request_ends(me: User) -> None:
    """`emu up` is interrupted before its request for a lab."""
    with _owner(me) as (process, channel):
        channel.close()
        assert process.wait(SECONDS) == 130
    _assert_no_trace(me)


def test_a_lab_ends_if_up_does_not_take_it_over(me: User) -> None:
    """`emu up` is interrupted at the moment at which the lab comes up."""
    with _owner(me) as (process, channel):
        channel.send(_job())
        _until(channel, Up)
        lab = Inside(process.pid)
        channel.close()
        assert process.wait(SECONDS) == 130
    assert_gone(lab)
    _assert_no_trace(me)


def test_a_stuck_build_ends_with_up(me: User) -> None:
    """The owner notices the end of `emu up` although the lab sends nothing."""
    with _owner(me) as (process, channel):
        channel.send(_job())
        _until(channel, Progress)
        lab = Inside(process.pid)
        for pid, command in lab.commands.items():
            if "emu.lab.init" in command:  # or a process forked from it
                os.kill(pid, signal.SIGSTOP)
        channel.close()
        assert process.wait(SECONDS) == 130
    assert_gone(lab)
    _assert_no_trace(me)


def test_a_terminated_owner_frees_its_name(me: User) -> None:
    """SIGTERM comes while the lab is built, and again while it ends."""
    with _owner(me) as (process, channel):
        channel.send(_job())
        _until(channel, Progress)
        lab = Inside(process.pid)
        process.terminate()
        process.terminate()
        assert process.wait(SECONDS) == 130
    assert_gone(lab)
    _assert_no_trace(me)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_up_leaves_nothing(me: User, number: signal.Signals) -> None:
    """The signal is that of Ctrl-C or of `kill`, while the lab is built."""
    path = me.home / "pair.emu.yml"
    path.write_text(SPEC)
    process = me.emu("up", path)
    assert process.stderr is not None
    assert process.stderr.readline() == b"building the lab\n"
    own = os.pidfd_open(owner_of_lab(me))
    try:
        os.killpg(process.pid, number)
        assert wait(process).code in (130, -signal.SIGTERM)
        assert select.select([own], [], [], SECONDS)[0], "the owner goes on"
    except BaseException:
        signal.pidfd_send_signal(own, signal.SIGKILL)
        raise
    finally:
        os.close(own)
    _assert_no_trace(me)


def test_an_owner_without_threads_frees_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the lack."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    near, far = channel_pair()
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with closing(near), closing(Channel(far)) as user, registry.claim("toy") as listener:
        monkeypatch.setattr(threading.Thread, "start", start)
        assert daemon_main._own("toy", _job(), user, listener.fileno()) == ExitCode.FAILED
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        with pytest.raises(HostError, match="no more processes or threads can be started"):
            near.receive()
    assert (registry.names(), registry.ended()) == ([], [])


def test_an_interrupt_after_up_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """`emu up` reports that the lab is up, and not an interruption."""
    told: list[object] = []

    def own(line: socket.socket) -> None:
        with closing(Channel(line)) as user:
            user.expect(ServeLab)
            user.send(Up())
            told.append(user.receive(within=SECONDS))

    def start(far: int) -> None:
        threading.Thread(target=own, args=[socket.socket(fileno=os.dup(far))]).start()

    def on_up() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        told.append("on_up")

    monkeypatch.setattr(up, "_start_owner", start)
    before = signal.getsignal(signal.SIGINT)
    bring_up(spec_from_text(SPEC.encode(), source="pair.emu.yml"), 500, lambda _: None, on_up)
    assert signal.getsignal(signal.SIGINT) is before
    assert "on_up" in told
