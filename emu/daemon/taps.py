"""Sends captured frames to clients: the records of a port to the socket of each viewer.

The core writes the records of all captured ports to one ring; a thread reads them and distributes
them to the viewers of each port. A slow viewer does not delay the emulation: each viewer has a
buffer, and records that do not fit are counted and reported in the stream by a record of kind
`LOST`.

A capture begins on request. Ports in the spec's `capture:` are captured from the lab's start on;
the first records are kept as their history, for viewers that request it.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from emu.bindings.fabric import Fabric
from emu.wire.raw import lost_record, parse_record, whole_records
from topologies.graph import Port

_SECONDS_BETWEEN_ROUNDS = 0.02
_ROOM_BYTES = 1 << 24
_HISTORY_BYTES = 1 << 25
"""The size of the histories of all ports together."""
_CHUNK = 1 << 18


class Viewer:
    """A client that receives the records of a port by a socket."""

    def __init__(
        self, index: int, line: socket.socket, *, since_start: bool = False, missed_before: int = 0
    ) -> None:
        """`missed_before`: the port's records that did not fit into the ring so far."""
        self.index = index
        self.since_start = since_start
        self.missed = 0
        """The number of records lost since the last one that fitted."""
        self._missed_in_ring = 0 if since_start else missed_before
        self._line = line
        self._waiting = bytearray()
        self._room_bytes = _ROOM_BYTES
        line.setblocking(False)

    def show(self, history: bytes, missed: int) -> None:
        """Adds the port's history, which does not count against the buffer."""
        self._room_bytes += len(history)
        self._waiting += history
        self.missed += missed

    def note_missed_in_ring(self, count: int) -> None:
        """`count`: the port's records that did not fit into the ring so far."""
        self.missed += count - self._missed_in_ring
        self._missed_in_ring = count

    def offer(self, record: bytes) -> None:
        if len(self._waiting) + len(record) > self._room_bytes:
            self.missed += 1
            return
        self._report_missed()
        self._waiting += record

    def push(self) -> bool:
        """Sends as much as the socket accepts. False: the viewer has ended."""
        try:
            while self._waiting:
                del self._waiting[: self._line.send(self._waiting[:_CHUNK])]
                if not self._waiting:
                    self._report_missed()
        except BlockingIOError:
            return True
        except OSError:
            return False
        return not self._has_enough()

    def close(self) -> None:
        with suppress(OSError):
            if self.missed:
                self._line.send(lost_record(self.missed))
        self._line.close()

    def _report_missed(self) -> None:
        if self.missed:
            self._waiting += lost_record(self.missed)
            self.missed = 0

    def _has_enough(self) -> bool:
        """Whether the other end has requested the end of the capture."""
        try:
            return self._line.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


class History:
    """The first records of some ports."""

    def __init__(self, indices: Iterable[int]) -> None:
        self._kept = {index: bytearray() for index in indices}
        self._missed = dict.fromkeys(self._kept, 0)
        self._room_bytes = _HISTORY_BYTES

    def __contains__(self, index: int) -> bool:
        return index in self._kept

    def keep(self, index: int, record: bytes) -> None:
        if index not in self._kept:
            return
        if len(record) > self._room_bytes:
            self._missed[index] += 1
        else:
            self._kept[index] += record
            self._room_bytes -= len(record)

    def of(self, index: int) -> tuple[bytes, int]:
        """A port's records, and the number of those that did not fit into the history."""
        return bytes(self._kept[index]), self._missed[index]


class Taps:
    """All taps of a fabric. A context manager: its thread distributes records in the body. Where
    emulated time waits for the captures, the caller calls `distribute` instead.

    Without viewers the thread sleeps: it shares Python's lock with the thread that emulates, and
    must not be preempted while it holds it.
    """

    def __init__(self, fabric: Fabric, kept: Sequence[Port] = ()) -> None:
        """`kept`: ports with a history, which are captured already."""
        self._fabric = fabric
        self._history = History(fabric.index[port] for port in kept)
        self._viewers: list[Viewer] = []
        self._joining: list[tuple[bytes, Viewer]] = []
        """New viewers for the thread, each with the records captured before it joined."""
        self._watched: Counter[int] = Counter()
        self._unused: set[int] = set()
        self._changing = threading.Lock()
        """Held only briefly, because the thread that emulates takes it, too."""
        self._over = threading.Event()
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._run, name="taps", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._wanted.set()
        self._thread.join()

    def put_on(self, port: Port, line: int, *, since_start: bool = False) -> None:
        """Sends the port's frames from now on to the socket `line`. `since_start`: whether to send
        the port's history first.

        Must be called between two runs of the fabric, as `take_unused_off`.
        """
        index = self._fabric.index[port]
        missed = self._fabric.captures_missed_at(index)
        opened = socket.socket(fileno=line)
        viewer = Viewer(index, opened, since_start=since_start, missed_before=missed)
        with self._changing:
            self._joining.append((self._fabric.captured(), viewer))
            self._fabric.capture([port])
            self._watched[index] += 1
            self._wanted.set()

    def take_unused_off(self) -> None:
        """Ends the capture of ports without viewers."""
        with self._changing:
            unused, self._unused = self._unused, set()
            for index in unused:
                if not self._watched[index] and index not in self._history:
                    self._fabric.end_capture(index)

    def _run(self) -> None:
        while not self._over.wait(_SECONDS_BETWEEN_ROUNDS):
            self._wanted.wait()
            self.distribute()

    @property
    def has_viewers(self) -> bool:
        return bool(self._viewers or self._joining)

    def distribute(self) -> None:
        """Passes all records on that have been captured so far."""
        with self._changing:
            joining, self._joining = self._joining, []
            latest = self._fabric.captured()
            missed = {index: self._fabric.captures_missed_at(index) for index in self._watched}
        for before, viewer in joining:
            self._distribute(before)
            if viewer.since_start:
                viewer.show(*self._history.of(viewer.index))
            self._viewers.append(viewer)
        self._distribute(latest)
        for viewer in self._viewers:
            viewer.note_missed_in_ring(missed[viewer.index])
        self._remove([viewer for viewer in self._viewers if not viewer.push()])

    def _distribute(self, records: bytes) -> None:
        for record in whole_records(records):
            index = parse_record(record).port_index
            self._history.keep(index, record)
            for viewer in self._viewers:
                if viewer.index == index:
                    viewer.offer(record)

    def _remove(self, gone: list[Viewer]) -> None:
        for viewer in gone:
            viewer.close()
            self._viewers.remove(viewer)
        with self._changing:
            for viewer in gone:
                self._watched[viewer.index] -= 1
                self._unused.add(viewer.index)
            if not self._viewers and not self._joining:
                self._wanted.clear()
