"""Hands the runs of a sweep out to workers, and collects their results as they come.

Only some runs more than the workers can do at once are with the scheduler at a time, so that its
memory does not grow with the sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from emu.sweeps.cluster import Cluster
from emu.sweeps.plan import Basis, PlannedRun
from emu.sweeps.pool import Pool, Work
from emu.sweeps.work import Outcome, work

_LEAST_OPEN = 64
_OPEN_A_THREAD = 4
"""Runs with the scheduler for each that is worked on."""


def execute(
    cluster: Cluster, made: Basis, runs: Sequence[PlannedRun], *, do: Work = work
) -> Iterator[tuple[PlannedRun, Outcome]]:
    """Yields each run and its result when it ends. Workers call `do`.

    Raises FabricError if the scheduler has gone.
    """
    waiting = iter(runs)
    by_key = {run.key: run for run in runs}
    pool = Pool(cluster, do)

    def hand_out() -> None:
        room = max(_LEAST_OPEN, _OPEN_A_THREAD * pool.width) - len(pool)
        for run in islice(waiting, max(0, room)):
            pool.submit(made.task(run))

    hand_out()
    while len(pool):
        for outcome in pool.ended():
            yield by_key[outcome.key], outcome
        hand_out()
