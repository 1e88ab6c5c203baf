"""Runs one by one, for a search that chooses its next points by the results of earlier ones.

    submit ──▶ is the run in the folder? ── yes ──▶ ended
                          │ no
                          └──▶ worker ──▶ row in the folder ──▶ ended

The cluster is opened for the first run that is not in the folder. A run that is asked for twice at
the same time is done once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from emu.runtime.runner import ignore
from emu.sweeps.cluster import cluster
from emu.sweeps.plan import Basis, PlannedRun
from emu.sweeps.pool import Pool
from emu.sweeps.store import Row, Store


class Evaluator:
    """Does runs and keeps their rows in a folder. A context manager: its end is the cluster's."""

    def __init__(
        self,
        basis: Basis,
        store: Store,
        *,
        workers: int,
        scheduler: str | None,
        on_note: Callable[[str], None] = ignore,
    ) -> None:
        """`workers` on this machine, or the cluster at the address `scheduler`."""
        self.computed = 0
        """How many runs were done now; the others were in the folder."""
        self._basis, self._store = basis, store
        self._workers, self._scheduler, self._on_note = workers, scheduler, on_note
        self._stack = ExitStack()
        self._pool: Pool | None = None
        self._ready: list[tuple[PlannedRun, Row]] = []
        self._waiting: dict[str, list[PlannedRun]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def width(self) -> int:
        """How many runs the workers do at once."""
        at_once = self._pool.width if self._pool is not None else 0
        return max(1, at_once or self._workers)

    def submit(self, run: PlannedRun) -> None:
        """Asks for a run. Raises FabricError if the scheduler has gone."""
        if run.key in self._waiting:
            self._waiting[run.key].append(run)
            return
        row = self._store.row(self._basis, run)
        if row is not None:
            self._ready.append((run, row))
            return
        self._opened().submit(self._basis.task(run))
        self._waiting[run.key] = [run]

    def ended(self) -> list[tuple[PlannedRun, Row]]:
        """Runs that have ended since the last call, with their rows; waits a moment for the first.
        A row's `error` is empty unless the run failed. Raises FabricError, OSError."""
        ended, self._ready = self._ready, []
        if ended or self._pool is None:
            return ended
        for outcome in self._pool.ended():
            for run in self._waiting.pop(outcome.key):
                ended.append((run, self._store.add(self._basis, run, outcome)))
            self.computed += 1
        return ended

    def _opened(self) -> Pool:
        if self._pool is None:
            used = cluster(self._scheduler, self._workers, self._on_note)
            self._pool = Pool(self._stack.enter_context(used))
        return self._pool
