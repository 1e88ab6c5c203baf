"""The share of a fabric that a rank runs (emu/runtime/mpi.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emu._core import ffi, lib
from emu.bindings.fabric import DEADLOCK_INTERVAL_PS
from emu.bindings.gather import delivered_here
from emu.bindings.partition import Partition
from emu.errors import FabricError
from emu.measure.run_progress import RunProgress
from emu.runtime.mpi_world import World
from emu.runtime.virtual import PROGRESS_SECONDS, STEP_NS, VirtualFabric
from emu.spec.scenario import Spec
from emu.subnet.subnet import Subnet
from topologies.graph import Topology

_FIRST_BYTES = 1 << 16
"""The largest packet of mail that goes as one message; what is longer follows in a second one."""
_FAILURES = 4096
"""The most failed operations in one message between ranks."""


@dataclass(frozen=True)
class Task:
    """What rank 0 tells the others to run."""

    version: str
    spec: Spec
    subnet: Subnet | None
    cut: Partition
    threads: int
    """Of each rank."""


class RankFabric(VirtualFabric):
    """The share of a fabric that this rank runs. What it does, all ranks do at the same time."""

    def __init__(self, world: World, task: Task, topology: Topology) -> None:
        parts, ranks = task.cut.parts, world.ranks
        first_parts = [rank * parts // ranks for rank in range(ranks + 1)]
        own_parts = range(*first_parts[world.rank : world.rank + 2])
        super().__init__(task.spec, topology, task.subnet, cut=replace(task.cut, own=own_parts))
        self._world = world
        self._over = False
        threads = min(task.threads, len(own_parts))
        workload = self.endpoints.workload
        done = lib.fabric_take_parts(
            self.fabric.core, first_parts, ranks, world.rank, threads, workload
        )
        if not done:
            raise FabricError("no memory for the mail between ranks; make the fabric smaller")
        lookahead_ps = lib.fabric_lookahead(self.fabric.core)
        self._lookahead_ps = world.all.allreduce(lookahead_ps, world.mpi.MIN)
        self._others = [rank for rank in range(ranks) if rank != world.rank]
        self._received = {rank: np.empty(_FIRST_BYTES, np.uint8) for rank in self._others}
        self._failures = ffi.new("struct workload_failure[]", _FAILURES)
        self._next_look_ps = DEADLOCK_INTERVAL_PS
        self.windows = 0
        self.exchange_seconds = 0.0

    @property
    def finished(self) -> bool:
        """As the ranks have agreed after the last step."""
        return self._over

    def start(self) -> None:
        super().start()
        core, ports = self.fabric.core, self.fabric.port_count
        if not lib.fabric_share_deadlocks(core):
            raise FabricError("no memory for the search for deadlocks; make the fabric smaller")
        self._stuck = np.frombuffer(ffi.buffer(lib.fabric_deadlock_set(core), 2 * ports), np.uint16)
        places = ffi.buffer(lib.fabric_deadlock_places(core), 4 * lib.CLASSES * ports)
        self._places = np.frombuffer(places, np.uint32)
        self._agree()

    def run_until(self, now_ns: int) -> None:
        while self._next_look_ps <= now_ns * 1000:
            self._run_until(self._next_look_ps - 1)
            self._look_for_deadlocks(self._next_look_ps)
            self._next_look_ps += DEADLOCK_INTERVAL_PS
        self._run_until(now_ns * 1000)

    def _run_until(self, until_ps: int) -> None:
        core, lookahead_ps = self.fabric.core, self._lookahead_ps
        next_ps = self._exchange()
        while next_ps <= until_ps:
            lib.fabric_run_window(core, min(until_ps, next_ps + lookahead_ps - 1))
            next_ps = self._exchange()
        lib.fabric_arrive(core, until_ps)
        self.fabric.refuse_short_memory()

    def run_steps(self, until_ns: int) -> None:
        while self.now_ns < until_ns:
            self.run_until(min(self.now_ns + STEP_NS, until_ns))
            if self._agree():
                return

    def stretches(self, limit_ps: int) -> Iterator[None]:
        """As on one process, but rank 0 decides for all how long a stretch is."""
        steps, limit_ns = 1, -(-limit_ps // 1000)
        while not self.finished and self.now_ns * 1000 < limit_ps:
            began = time.monotonic()
            steps = self._world.all.bcast(steps)
            self.run_steps(min(self.now_ns + steps * STEP_NS, limit_ns))
            seconds = time.monotonic() - began
            yield
            steps = 2 * steps if seconds < PROGRESS_SECONDS / 2 else max(1, steps // 2)

    def progress(self) -> RunProgress:
        """Of all ranks at rank 0, of its own at others."""
        delivered = delivered_here(self.fabric, self.endpoints)
        self._world.add_up(delivered)
        return self.endpoints.progress_of(self.now_ns, delivered, over=False)

    # ---- mail ------------------------------------------------------------------------------------

    def _exchange(self) -> int:
        """Sends each rank its mail and takes in what comes. Returns when the next event anywhere is
        due, in picoseconds."""
        world, core = self._world, self.fabric.core
        began = time.perf_counter()
        next_ps = int(lib.fabric_pack_mail(core))
        byte, everyone = world.mpi.BYTE, world.all
        receives = [everyone.Irecv([self._received[rank], byte], rank) for rank in self._others]
        sends = [
            everyone.Isend([piece, byte], rank)
            for rank in self._others
            for piece in _pieces(self._packed(rank))
        ]
        world.mpi.Request.Waitall(receives)
        for rank in self._others:
            due_ps, size = self._received[rank][:16].view(np.int64).tolist()
            next_ps = min(next_ps, due_ps)
            lib.fabric_unpack_mail(core, ffi.from_buffer("uint8_t[]", self._whole(rank, size)))
        world.mpi.Request.Waitall(sends)
        self.windows += 1
        self.exchange_seconds += time.perf_counter() - began
        return next_ps

    def _packed(self, rank: int) -> Any:
        bytes_ = ffi.new("uint8_t **")
        size = lib.fabric_packed_mail(self.fabric.core, rank, bytes_)
        return ffi.buffer(bytes_[0], size)

    def _whole(self, rank: int, size: int) -> NDArray[np.uint8]:
        """The packet of `size` bytes of which the first message has come."""
        first = self._received[rank]
        if size <= len(first):
            return first
        whole = np.empty(size, np.uint8)
        whole[: len(first)] = first
        self._world.all.Recv([whole[len(first) :], self._world.mpi.BYTE], rank)
        return whole

    # ---- deadlocks -------------------------------------------------------------------------------

    def _look_for_deadlocks(self, now_ps: int) -> None:
        """Searches at this time, before anything happens at it."""
        own = int(lib.fabric_deadlock_classes(self.fabric.core))
        classes = self._world.all.allreduce(own, self._world.mpi.BOR)
        for priority in range(lib.CLASSES):
            if classes & 1 << priority:
                self._look_at(1 << priority, now_ps)
        if classes >> lib.CLASSES:
            self._look_at((1 << lib.CLASSES) - 1, now_ps)

    def _look_at(self, classes: int, now_ps: int) -> None:
        core, mpi = self.fabric.core, self._world.mpi
        lib.fabric_deadlock_heads(core, classes)
        self._combine(self._places, mpi.BOR)
        lib.fabric_deadlock_begin(core)
        self._combine(self._stuck, mpi.BOR)
        if not self._stuck.any():
            return
        lib.fabric_deadlock_count(core)
        struck = True
        while struck:
            lib.fabric_deadlock_strike(core)
            self._combine(self._stuck, mpi.BAND)
            struck = lib.fabric_deadlock_struck(core)
        if self._stuck.any():
            lib.fabric_deadlock_follow(core)
            self._combine(self._places, mpi.BOR)
            lib.fabric_deadlock_report(core, now_ps)

    def _combine(self, array: NDArray[Any], operation: Any) -> None:
        self._world.all.Allreduce(self._world.mpi.IN_PLACE, array, operation)

    # ---- ends of steps ---------------------------------------------------------------------------

    def _agree(self) -> bool:
        """Whether the workload is over, or a rank's captures must be drained."""
        world, workload = self._world, self.endpoints.workload
        rows = np.empty((world.ranks, 5), np.int64)
        while True:
            failed = lib.workload_take_failures(workload, self._failures, _FAILURES)
            counts = lib.workload_counts(workload)
            wants_out = lib.fabric_captures_want_out(self.fabric.core)
            left = (counts.remaining, counts.undelivered, counts.last_change_ps, wants_out, failed)
            world.all.Allgather(np.array(left, np.int64), rows)
            if not rows[:, 4].any():
                break
            self._hear_failures(failed)
        whole = ffi.new("struct workload_counts *")
        whole.remaining, whole.undelivered = int(rows[:, 0].sum()), int(rows[:, 1].sum())
        whole.last_change_ps = int(rows[:, 2].max())
        self._over = lib.workload_counts_say_over(workload, whole[0], self.fabric.now_ps)
        return self._over or bool(rows[:, 3].any())

    def _hear_failures(self, count: int) -> None:
        """All ranks hear of the failed operations that each has taken."""
        size = ffi.sizeof("struct workload_failure")
        own = bytes(ffi.buffer(self._failures, count * size))
        for told in self._world.all.allgather(own):
            failures = ffi.from_buffer("struct workload_failure[]", told)
            for place in range(len(told) // size):
                lib.workload_hear_failure(self.endpoints.workload, failures + place)


def _pieces(packet: Any) -> list[Any]:
    """The messages that a packet goes as."""
    if len(packet) <= _FIRST_BYTES:
        return [packet]
    whole = memoryview(packet)
    return [whole[:_FIRST_BYTES], whole[_FIRST_BYTES:]]
