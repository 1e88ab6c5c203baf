"""A lab's view of its NIC counters, while one workload replaces another."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from emu.daemon.latest_counters import Copies, LatestCounters
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.rpc import RpcClient
from emu.lab.nic_process import NicProcess
from emu.measure.seqlock import SharedCounters


@pytest.fixture
def channel() -> Iterator[Channel]:
    """A channel with no process at the far end."""
    near, far = socket.socketpair()
    with far, closing(Channel(near)) as channel:
        yield channel


def _nics(channel: Channel) -> NicProcess:
    counters = [SharedCounters.new(["h1"], [("bytes", 1)]) for _ in range(2)]
    return NicProcess(1, channel, RpcClient(channel, "the NIC process", "toy"), *counters)


def test_without_a_workload_there_are_no_counters() -> None:
    assert LatestCounters().copy() == Copies([])


def test_copies_stay_readable_when_a_workload_begins(channel: Channel) -> None:
    """A new workload closes the counters of the one before, but not the copies of their files."""
    shown = LatestCounters()
    shown.replace(_nics(channel))
    copies = shown.copy()
    again = _nics(channel)
    shown.replace(again)
    for file, layout in zip(copies.files, (copies.hosts, copies.flows), strict=True):
        assert layout is not None
        with closing(SharedCounters(file, layout)) as counters:
            assert counters.read()[1] == {"h1": {"bytes": [0]}}
    again.close_counters()


def test_a_new_workload_leaves_no_file_open(channel: Channel) -> None:
    """The number of open files is the same after each workload."""
    shown = LatestCounters()

    def opened_after(nics: NicProcess) -> int:
        shown.replace(nics)
        for file in shown.copy().files:
            os.close(file)
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    first = opened_after(_nics(channel))
    last = _nics(channel)
    assert opened_after(last) == first
    last.close_counters()


def test_a_failed_copy_leaves_no_descriptor_open(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first copy succeeds and the second finds no free descriptor."""
    shown, nics, copies = LatestCounters(), _nics(channel), list[int]()
    shown.replace(nics)

    def dup_once(file: int, dup: Callable[[int], int] = os.dup) -> int:
        if copies:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        copies.append(dup(file))
        return copies[0]

    monkeypatch.setattr(os, "dup", dup_once)
    with pytest.raises(OSError, match="Too many open files"):
        shown.copy()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(copies[0])
    nics.close_counters()
