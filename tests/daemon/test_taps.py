"""Captures of a running lab, on a fabric of the virtual clock."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from emu.daemon import taps
from emu.daemon.taps import Taps, Viewer
from emu.runtime.virtual import VirtualFabric
from emu.wire.raw import RawKind, RawRecord, lost_record, parse_record, whole_records
from tests.support.small_fabrics import PAIR, port, spec_of, started

KEPT = "capture=['left:h1']"


@contextmanager
def pair(*settings: str) -> Iterator[tuple[VirtualFabric, Taps]]:
    with started(spec_of(PAIR, *settings)) as run:
        kept = [port(run, name) for name in run.spec.capture]
        with Taps(run.fabric, kept) as dealer:
            yield run, dealer


class Watcher:
    """The far end of a capture."""

    def __init__(self, run: VirtualFabric, dealer: Taps, name: str, *, since_start: bool) -> None:
        near, self._far = socket.socketpair()
        self.index = run.fabric.index[port(run, name)]
        dealer.put_on(port(run, name), near.detach(), since_start=since_start)

    def records(self) -> list[RawRecord]:
        """End the capture and return all its records."""
        self._far.shutdown(socket.SHUT_WR)
        raw = bytearray()
        with self._far:
            while piece := self._far.recv(1 << 20):
                raw += piece
        return list(map(parse_record, whole_records(raw)))


@pytest.mark.parametrize("name", ["left:h1", "left:right"])
def test_a_capture_begins_at_its_request(name: str) -> None:
    """Earlier frames are not in the capture, whether the spec names the port or not."""
    with pair(KEPT) as (run, dealer):
        run.run_until(40_000)
        watcher = Watcher(run, dealer, name, since_start=False)
        run.run_until(60_000)
        records = watcher.records()
    assert len(records) > 20
    assert {record.port_index for record in records} == {watcher.index}
    assert min(record.time_ps for record in records) > 39_000_000


def test_history_comes_before_new_frames() -> None:
    """Of two captures of one port, the one without history is the end of the other."""
    with pair(KEPT) as (run, dealer):
        run.run_until(40_000)
        new = Watcher(run, dealer, "left:h1", since_start=False)
        whole = Watcher(run, dealer, "left:h1", since_start=True)
        run.run_until(60_000)
        later, everything = new.records(), whole.records()
        again = Watcher(run, dealer, "left:h1", since_start=True).records()
    assert everything[0].time_ps < 3_000_000
    assert everything[-len(later) :] == later
    assert 0 < len(later) < len(everything)
    assert again == everything


def test_history_without_room_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept and lost frames add up to all frames."""
    with pair(KEPT) as (run, dealer):
        run.run_until(60_000)
        whole = len(Watcher(run, dealer, "left:h1", since_start=True).records())
    monkeypatch.setattr(taps, "_HISTORY_BYTES", 50_000)
    with pair(KEPT) as (run, dealer):
        run.run_until(60_000)
        records = Watcher(run, dealer, "left:h1", since_start=True).records()
    *kept, last = records
    assert last.kind is RawKind.LOST
    assert len(kept) + last.length == whole


def test_ring_losses_are_counted_per_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture does not count losses before its start or at other ports."""
    monkeypatch.setattr("emu.bindings.fabric.CAPTURE_RING_BYTES", 1 << 14)
    with pair(KEPT) as (run, dealer):
        run.run_until(40_000)
        index = run.fabric.index[port(run, "left:h1")]
        assert run.fabric.captures_missed_at(index) == run.fabric.captures_missed > 0
        other = Watcher(run, dealer, "right:h2", since_start=False)
        assert other.records() == []
        same = Watcher(run, dealer, "left:h1", since_start=False)
        assert same.records() == []


def test_a_slow_reader_gets_records_of_its_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The records are at the places of the losses and at the end."""
    monkeypatch.setattr(taps, "_ROOM_BYTES", 3 * len(lost_record(1)))
    near, far = socket.socketpair()
    viewer = Viewer(0, near)
    for number in range(1, 6):
        viewer.offer(lost_record(number))
    far.shutdown(socket.SHUT_WR)
    assert not viewer.push()
    viewer.close()
    told = [record.length for record in map(parse_record, whole_records(far.recv(1 << 16)))]
    assert told == [1, 2, 3, 2]
