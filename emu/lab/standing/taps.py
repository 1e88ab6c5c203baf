"""Captured frames on their way out of a standing lab: the records of a port, to a socket each.

The core puts the records of all captured ports into one ring; a thread takes them
out and deals them to the sockets of those who watch that port. Nobody who reads
slowly holds up the emulation: each has room for some records, and what does not
fit is counted, and told in the stream as a record of kind `LOST`.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from emu.shim.fabric import Fabric
from emu.wire.raw import lost_record, parse_record, whole_records
from topologies.graph import Port

_SECONDS_BETWEEN_ROUNDS = 0.02
_ROOM_BYTES = 1 << 24
_CHUNK = 1 << 18


class Viewer:
    """One who watches a port, at the other end of a socket."""

    def __init__(self, index: int, line: socket.socket) -> None:
        self.index = index
        self.missed = 0
        """Records since the last one that had room."""
        self._line = line
        self._waiting = bytearray()
        line.setblocking(False)

    def offer(self, record: bytes) -> None:
        if self.missed and len(self._waiting) < _ROOM_BYTES:
            self._waiting += lost_record(self.missed)
            self.missed = 0
        if len(self._waiting) + len(record) > _ROOM_BYTES:
            self.missed += 1
        else:
            self._waiting += record

    def push(self) -> bool:
        """Sends what the socket takes. False: it is done, nobody is there any more."""
        try:
            while self._waiting:
                del self._waiting[: self._line.send(self._waiting[:_CHUNK])]
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

    def _has_enough(self) -> bool:
        """Whether the other end has said that it wants no more."""
        try:
            return self._line.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


class Taps:
    """All taps of a fabric. A context: a thread deals out while it is open.

    Without viewers the thread sleeps: it shares Python's lock with the thread that
    emulates, and must not be preempted with it for nothing.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._viewers: list[Viewer] = []
        self._unused: list[int] = []
        self._missed = 0
        self._changing = threading.Lock()
        self._over = threading.Event()
        self._wanted = threading.Event()
        self._dealer = threading.Thread(target=self._deal, name="taps", daemon=True)

    def __enter__(self) -> Self:
        self._dealer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._wanted.set()
        self._dealer.join()

    def put_on(self, port: Port, line: int) -> None:
        """Shows what passes the port to whoever is at the other end of the socket `line`.

        Only between two runs of the fabric, as is `take_unused_off`.
        """
        viewer = Viewer(self._fabric.index[port], socket.socket(fileno=line))
        with self._changing:
            self._fabric.capture([port])
            self._viewers.append(viewer)
            self._wanted.set()

    def take_unused_off(self) -> None:
        """Ends the capture of ports that nobody watches."""
        with self._changing:
            watched = {viewer.index for viewer in self._viewers}
            unused, self._unused = self._unused, []
        for index in unused:
            if index not in watched:
                self._fabric.end_capture(index)

    def _deal(self) -> None:
        while not self._over.wait(_SECONDS_BETWEEN_ROUNDS):
            self._wanted.wait()
            with self._changing:
                self._deal_once()

    def _deal_once(self) -> None:
        for record in whole_records(self._fabric.captured()):
            index = parse_record(record).port_index
            for viewer in self._viewers:
                if viewer.index == index:
                    viewer.offer(record)
        missed = self._fabric.captures_missed
        for viewer in self._viewers:
            viewer.missed += missed - self._missed
        self._missed = missed
        gone = [viewer for viewer in self._viewers if not viewer.push()]
        for viewer in gone:
            viewer.close()
            self._viewers.remove(viewer)
            self._unused.append(viewer.index)
        if not self._viewers:
            self._wanted.clear()
