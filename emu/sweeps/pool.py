"""Tasks on the workers of a cluster: handed over one by one, collected as they end.

A task whose worker died is given to another one by the scheduler; if that happens too often, the
task has failed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from emu.errors import FabricError
from emu.sweeps.cluster import Cluster
from emu.sweeps.work import Outcome, Task, work

if TYPE_CHECKING:
    from distributed import Future

_SECONDS_BETWEEN_LOOKS = 0.25
"""At workers that may have died."""
_SECONDS_FOR_A_RESULT = 2.0
"""To come from a worker that may have died a moment ago."""
_GONE = "the Dask scheduler has gone; start the same command again with one that runs; it goes on"

Work = Callable[[Task], Outcome]


class Pool:
    """The tasks that are with a cluster."""

    def __init__(self, cluster: Cluster, do: Work = work) -> None:
        """`do`: what workers call."""
        self.cluster = cluster
        self._do = do
        self._open: dict[str, Future[Outcome]] = {}
        self._ended: SimpleQueue[str] = SimpleQueue()

    def __len__(self) -> int:
        """How many tasks have not ended."""
        return len(self._open)

    @property
    def width(self) -> int:
        """How many tasks the workers do at once, at present. Raises FabricError if the scheduler
        has gone."""
        try:
            return self.cluster.threads
        except OSError:
            raise FabricError(_GONE) from None

    def submit(self, task: Task) -> None:
        """Hands a task over. Raises FabricError if the scheduler has gone."""
        try:
            key = f"emu-{task.key}"
            self._watch(task.key, self.cluster.client.submit(self._do, task, key=key, pure=False))
        except OSError:
            raise FabricError(_GONE) from None

    def ended(self) -> list[Outcome]:
        """The results of the tasks that have ended since the last call; waits a moment for the
        first. Starts workers anew that have died. Raises FabricError if the scheduler has gone."""
        outcomes = []
        for key in self._keys():
            future = self._open.pop(key)
            outcome = _outcome(key, future)
            if outcome is None:
                self._watch(key, future)
            else:
                outcomes.append(outcome)
        self.cluster.revive()
        return outcomes

    def _watch(self, key: str, future: Future[Outcome]) -> None:
        self._open[key] = future
        future.add_done_callback(lambda _future: self._ended.put(key))

    def _keys(self) -> list[str]:
        try:
            keys = [self._ended.get(timeout=_SECONDS_BETWEEN_LOOKS)]
        except Empty:
            return []
        while not self._ended.empty():
            keys.append(self._ended.get())
        return keys


def _outcome(key: str, future: Future[Outcome]) -> Outcome | None:
    """What came out of a task. None: its worker died with the result, so it is done again. Raises
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
            key,
            error="each worker that began this run died; perhaps memory ran out: take fewer "
            "workers, or a smaller fabric",
        )
    except Exception as error:  # of Dask, or of what a worker has installed
        return Outcome(key, error=f"the worker failed: {type(error).__name__}: {error}")
    return outcome
