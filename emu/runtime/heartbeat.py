"""Finds a rank that has stopped and has not died: by a signal, or because its machine hangs.

A thread of each rank tells rank 0 every second that it is alive, and rank 0 tells all others. It
does so while the rank builds, runs or writes results. When nothing has come
from a rank for `SILENCE_SECONDS`, the thread calls `on_silence`.

A thread that was itself stopped, with the whole run, cannot know who was silent meanwhile, so that
it waits anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

BEAT_SECONDS = 1.0
SILENCE_SECONDS = 60.0


class Heartbeat:
    """Of one rank. Use it between MPI's start and end, which must allow calls by any thread."""

    def __init__(self, mpi: Any, on_silence: Callable[[int, float], None]) -> None:
        """`on_silence` gets the rank from which nothing comes, and for how long, in seconds."""
        self._mpi = mpi
        self._all = mpi.COMM_WORLD.Dup()
        rank, ranks = self._all.rank, self._all.size
        peers = range(1, ranks) if rank == 0 else (0,)
        self._peers = {peer: _Peer(mpi, self._all, peer) for peer in peers}
        self._on_silence = on_silence
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """All ranks call this, after their last exchange."""
        self._over.set()
        self._thread.join()
        self._all.Barrier()  # from here on, nobody sends
        for peer in self._peers.values():
            peer.end()
        self._all.Free()

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._over.wait(BEAT_SECONDS):
            now = time.monotonic()
            was_stopped = now - last > SILENCE_SECONDS / 2
            last = now
            for number, peer in self._peers.items():
                peer.beat()
                if peer.was_heard() or was_stopped:
                    peer.heard_at = now
                elif now - peer.heard_at > SILENCE_SECONDS:
                    self._on_silence(number, SILENCE_SECONDS)


class _Peer:
    """Another rank: beats to it and from it."""

    def __init__(self, mpi: Any, everyone: Any, number: int) -> None:
        self._mpi, self._everyone, self._number = mpi, everyone, number
        self._came = np.zeros(1, np.uint8)
        self._goes = np.zeros(1, np.uint8)
        self._receive = everyone.Irecv([self._came, mpi.BYTE], number)
        self._send = mpi.REQUEST_NULL
        self.heard_at = time.monotonic()

    def beat(self) -> None:
        if self._send.Test():
            self._send = self._everyone.Isend([self._goes, self._mpi.BYTE], self._number)

    def was_heard(self) -> bool:
        """Whether anything has come since the last call."""
        heard = False
        while self._receive.Test():
            heard = True
            self._receive = self._everyone.Irecv([self._came, self._mpi.BYTE], self._number)
        return heard

    def end(self) -> None:
        self._receive.Cancel()
        self._receive.Wait()
        self._send.Wait()
