"""Tasks on the workers of a cluster: handed over one by one, collected as they end.

A task whose worker died is given to another one by the scheduler. It gives up if that happens too
often, also on tasks that only waited for a worker that another task killed. So such tasks are done
again, one at a time and without others. The one that kills its workers then has failed.
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

_DEADLY = (
    "each worker that began this run died; perhaps memory ran out: take fewer workers, or a "
    "smaller fabric"
)

Work = Callable[[Task], Outcome]


class Pool:
    """The tasks that are with a cluster."""

    def __init__(self, cluster: Cluster, do: Work = work) -> None:
        """`do`: what workers call."""
        self.cluster = cluster
        self._do = do
        self._open: dict[str, tuple[Task, Future[Outcome]]] = {}
        self._ended: SimpleQueue[str] = SimpleQueue()
        self._suspects: list[Task] = []
        """One of them kills its workers, or several do."""
        self._alone: str | None = None
        """The key of the suspect that is done, while no other task is."""

    def __len__(self) -> int:
        """How many tasks have not ended."""
        return len(self._open) + len(self._suspects)

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
        self._alone = None
        self._submit(task, f"emu-{task.key}")

    def ended(self) -> list[Outcome]:
        """The results of the tasks that have ended since the last call; waits a moment for the
        first. Starts workers anew that have died. Raises FabricError if the scheduler has gone."""
        self._try_a_suspect()
        found = (self._result(key) for key in self._keys())
        outcomes = [outcome for outcome in found if outcome is not None]
        self.cluster.revive()
        return outcomes

    def _submit(self, task: Task, name: str) -> None:
        try:
            future = self.cluster.client.submit(self._do, task, key=name, pure=False)
        except OSError:
            raise FabricError(_GONE) from None
        self._watch(task, future)

    def _try_a_suspect(self) -> None:
        if self._suspects and not self._open:
            task = self._suspects.pop(0)
            self._alone = task.key
            self._submit(task, f"emu-{task.key}-alone")

    def _watch(self, task: Task, future: Future[Outcome]) -> None:
        self._open[task.key] = task, future
        future.add_done_callback(lambda _future: self._ended.put(task.key))

    def _result(self, key: str) -> Outcome | None:
        """What came out of a task. None: it is to be done again."""
        from distributed import KilledWorker

        self.cluster.revive()  # a result that died with its worker comes from another one
        task, future = self._open.pop(key)
        try:
            return _outcome(key, future)
        except TimeoutError:
            self._watch(task, future)
        except KilledWorker:
            if key == self._alone:
                return Outcome(key, error=_DEADLY)
            self._suspects.append(task)
        return None

    def _keys(self) -> list[str]:
        try:
            keys = [self._ended.get(timeout=_SECONDS_BETWEEN_LOOKS)]
        except Empty:
            return []
        while not self._ended.empty():
            keys.append(self._ended.get())
        return keys


def _outcome(key: str, future: Future[Outcome]) -> Outcome:
    """What came out of a task.

    Raises TimeoutError if its worker died with the result, so that it is done again; KilledWorker
    if too many workers died; FabricError if the scheduler has gone.
    """
    from distributed import KilledWorker

    try:
        if future.status == "pending":
            raise TimeoutError
        return future.result(timeout=_SECONDS_FOR_A_RESULT)
    except (TimeoutError, KilledWorker):
        raise
    except (CancelledError, OSError):
        raise FabricError(_GONE) from None
    except Exception as error:  # of Dask, or of what a worker has installed
        return Outcome(key, error=f"the worker failed: {type(error).__name__}: {error}")
