"""Hands the runs of a sweep out to workers, and collects their results as they come.

Only some runs more than the workers can do at once are with the scheduler at a time, so that its
memory does not grow with the sweep. A run whose worker died is given to another one by the
scheduler; if that happens too often, the run has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from emu.errors import FabricError
from emu.sweeps.cluster import Cluster
from emu.sweeps.plan import Plan, PlannedRun
from emu.sweeps.work import Outcome, Task, work

if TYPE_CHECKING:
    from distributed import Future

_LEAST_OPEN = 64
_OPEN_A_THREAD = 4
"""Runs with the scheduler for each that is worked on."""
_SECONDS_BETWEEN_LOOKS = 0.25
"""At workers that may have died."""
_SECONDS_FOR_A_RESULT = 2.0
"""To come from a worker that may have died a moment ago."""
_GONE = "the Dask scheduler has gone; start the sweep again with one that runs, and it goes on"

Work = Callable[[Task], Outcome]


def execute(
    cluster: Cluster, made: Plan, runs: Sequence[PlannedRun], *, do: Work = work
) -> Iterator[tuple[PlannedRun, Outcome]]:
    """Yields each run and its result when it ends. Workers call `do`.

    Raises FabricError if the scheduler has gone.
    """
    waiting = iter(runs)
    open_runs: dict[str, tuple[PlannedRun, Future[Outcome]]] = {}
    ended: SimpleQueue[str] = SimpleQueue()

    def watch(run: PlannedRun, future: Future[Outcome]) -> None:
        open_runs[run.key] = run, future
        future.add_done_callback(lambda _future: ended.put(run.key))

    def hand_out() -> None:
        try:
            room = max(_LEAST_OPEN, _OPEN_A_THREAD * cluster.threads) - len(open_runs)
            for run in islice(waiting, max(0, room)):
                key = f"emu-{run.key}"
                watch(run, cluster.client.submit(do, made.task(run), key=key, pure=False))
        except OSError:
            raise FabricError(_GONE) from None

    hand_out()
    while open_runs:
        for key in _ended(ended):
            run, future = open_runs.pop(key)
            outcome = _outcome(run, future)
            if outcome is None:
                watch(run, future)
            else:
                yield run, outcome
        cluster.revive()
        hand_out()


def _ended(ended: SimpleQueue[str]) -> list[str]:
    """The keys of the runs that have ended since the last call; waits a moment for the first."""
    try:
        keys = [ended.get(timeout=_SECONDS_BETWEEN_LOOKS)]
    except Empty:
        return []
    while not ended.empty():
        keys.append(ended.get())
    return keys


def _outcome(run: PlannedRun, future: Future[Outcome]) -> Outcome | None:
    """What came out of a run. None: its worker died with the result, so it is done again. Raises
    FabricError if the scheduler has gone."""
    from distributed import KilledWorker

    try:
        if future.status == "pending":
            return None
        outcome: Outcome = future.result(timeout=_SECONDS_FOR_A_RESULT)
    except TimeoutError:
        return None
    except (CancelledError, OSError):
        raise FabricError(_GONE) from None
    except KilledWorker:
        return Outcome(
            run.key,
            error="each worker that began this run died; perhaps memory ran out: take fewer "
            "workers, or a smaller fabric",
        )
    except Exception as error:  # of Dask, or of what a worker has installed
        return Outcome(run.key, error=f"the worker failed: {type(error).__name__}: {error}")
    return outcome
