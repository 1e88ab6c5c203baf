"""`emu exec`: the program ends with it, and inherits none of its files."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.background_lab import at_home, lab_up
from tests.support.lab_fabrics import ROCE
from tests.support.user import User, wait
from tests.support.waiting import eventually


@pytest.fixture
def me(myself: User) -> User:
    return at_home(myself)


@pytest.fixture
def hangs_up() -> Iterator[None]:
    """Programs do not ignore SIGHUP, as they do below `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def _sleeping(seconds: str) -> bool:
    """Whether `sleep SECONDS` runs anywhere."""
    wanted = f"sleep\0{seconds}\0".encode()
    return any(_command(process) == wanted for process in Path("/proc").glob("[0-9]*"))


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # it has just ended
        return b""


@pytest.mark.usefixtures("hangs_up")
def test_the_program_ends_with_it(me: User) -> None:
    """Whether a signal asks it to end, or it is killed."""
    seconds = "987654321"
    with lab_up(me, ROCE):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            command = me.emu("exec", "h1", "--", "sleep", seconds)
            eventually(lambda: _sleeping(seconds))
            command.send_signal(number)
            assert wait(command).code in (128 + number, -number)
            eventually(lambda: not _sleeping(seconds))


def test_the_program_decides_how_to_end(me: User) -> None:
    with lab_up(me, ROCE):
        script = "trap 'echo asked; exit 3' TERM; echo begins; while :; do sleep 0.1; done"
        command = me.emu("exec", "h1", "--", "sh", "-c", script)
        assert command.stdout is not None
        assert command.stdout.readline() == b"begins\n"
        command.send_signal(signal.SIGTERM)
        ended = wait(command)
        assert (ended.code, ended.out) == (3, "asked\n")


def test_the_program_inherits_no_files_of_the_lab(me: User) -> None:
    """Such as its namespaces."""
    with lab_up(me, ROCE):
        listed = me.run_emu("exec", "--no-rdma", "h1", "--", "sh", "-c", "readlink /proc/self/fd/*")
        assert listed.out
        assert not [line for line in listed.out.splitlines() if ":[" in line and "pipe" not in line]
