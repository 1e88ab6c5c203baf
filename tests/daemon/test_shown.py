"""What a lab shows of its NICs, while one workload takes the place of another."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from emu.daemon.shown import ShownBoards
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.rpc import Line
from emu.lab.nic_process import NicProcess
from emu.measure.seqlock import Board


@pytest.fixture
def channel() -> Iterator[Channel]:
    """To nobody."""
    near, far = socket.socketpair()
    with far, closing(Channel(near)) as channel:
        yield channel


def _nics(channel: Channel) -> NicProcess:
    boards = [Board.new(["h1"], [("bytes", 1)]) for _ in range(2)]
    return NicProcess(1, channel, Line(channel, "the NIC process", "toy"), *boards)


def test_before_any_workload_there_is_nothing_to_look_at() -> None:
    assert ShownBoards().look() == ({"hosts": None, "flows": None}, [])


def test_who_looks_may_go_on_when_a_workload_begins(channel: Channel) -> None:
    """The files are copies: a workload that begins closes the boards of the one before."""
    shown = ShownBoards()
    shown.show(_nics(channel))
    legends, files = shown.look()
    again = _nics(channel)
    shown.show(again)
    for file, name in zip(files, ("hosts", "flows"), strict=True):
        with closing(Board(file, **legends[name])) as board:
            assert board.read()[1] == {"h1": {"bytes": [0]}}
    again.close_boards()


def test_a_workload_that_begins_leaves_no_file_open(channel: Channel) -> None:
    """However many there were."""
    shown = ShownBoards()

    def opened_after(nics: NicProcess) -> int:
        shown.show(nics)
        for file in shown.look()[1]:
            os.close(file)
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    first = opened_after(_nics(channel))
    last = _nics(channel)
    assert opened_after(last) == first
    last.close_boards()


def test_a_look_that_finds_no_more_descriptors_leaves_none_open(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first copy is made, the second is not."""
    shown, nics, copies = ShownBoards(), _nics(channel), list[int]()
    shown.show(nics)

    def dup_once(file: int, dup: Callable[[int], int] = os.dup) -> int:
        if copies:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        copies.append(dup(file))
        return copies[0]

    monkeypatch.setattr(os, "dup", dup_once)
    with pytest.raises(OSError, match="Too many open files"):
        shown.look()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(copies[0])
    nics.close_boards()
