"""Where runs are done: a Dask scheduler in this process with workers on this machine, or a cluster
that exists.

Workers on this machine are processes of their own program (`local_worker.py`). Dask's would run the
user's script again, since multiprocessing spawns them. A worker that dies is started anew, and the
scheduler gives its run to another one.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

from emu.errors import FabricError, UsageError
from emu.runtime.runner import ignore
from emu.sweeps.needs import has_dashboard

if TYPE_CHECKING:
    from distributed import Client

_SECONDS_TO_CONNECT = 10
_SECONDS_TO_END = 5.0
_MOST_EARLY_ENDS = 3
_EARLY_SECONDS = 20.0


@dataclass
class Cluster:
    """A scheduler with its workers."""

    client: Client
    workers: LocalWorkers | None
    """None: the cluster has its own."""
    dashboard: str
    """The address of Dask's dashboard; empty if there is none."""

    @property
    def threads(self) -> int:
        """How many runs it does at once, at present."""
        return sum(self.client.nthreads().values())

    def revive(self) -> None:
        """Starts local workers anew that have died. Raises FabricError if they do so at once."""
        if self.workers is not None:
            self.workers.revive()


def cores() -> int:
    """The processors that this process may use, which is the default number of workers."""
    return len(os.sched_getaffinity(0))


@contextmanager
def cluster(
    scheduler: str | None, workers: int, on_note: Callable[[str], None] = ignore
) -> Iterator[Cluster]:
    """A cluster for the body: at this address, or with so many workers on this machine.

    Raises UsageError if no scheduler answers.
    """
    kept = _kept.get()
    with ExitStack() as stack:
        if kept is None:
            yield _opened(stack, scheduler, workers, on_note)
        else:
            yield kept.cluster(scheduler, workers, on_note)


@contextmanager
def clusters_kept() -> Iterator[None]:
    """Clusters that are opened in the body stay open until its end. The next one that is asked for
    at the same address, or with as many workers, is the same."""
    with ExitStack() as stack:
        before = _kept.set(_Kept(stack))
        stack.callback(_kept.reset, before)
        yield


class _Kept:
    """Clusters that are open."""

    def __init__(self, stack: ExitStack) -> None:
        """`stack`: its end is theirs."""
        self._stack = stack
        self._open: dict[tuple[str | None, int], Cluster] = {}

    def cluster(
        self, scheduler: str | None, workers: int, on_note: Callable[[str], None]
    ) -> Cluster:
        """Raises UsageError if no scheduler answers."""
        which = scheduler, workers
        if which not in self._open:
            self._open[which] = _opened(self._stack, scheduler, workers, on_note)
        return self._open[which]


_kept: ContextVar[_Kept | None] = ContextVar("_kept", default=None)


def _opened(
    stack: ExitStack, scheduler: str | None, workers: int, on_note: Callable[[str], None]
) -> Cluster:
    """Tells what a user may want to know of it."""
    _silence()
    used = _local(stack, workers) if scheduler is None else _existing(stack, scheduler)
    if used.dashboard:
        on_note(f"Dask's dashboard: {used.dashboard}")
    if scheduler is not None and not used.threads:
        on_note(f"the cluster at {scheduler} has no worker yet; the runs wait for one")
    return used


def _existing(stack: ExitStack, scheduler: str) -> Cluster:
    from distributed import Client

    try:
        client = stack.enter_context(Client(scheduler, timeout=_SECONDS_TO_CONNECT))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--scheduler: no Dask scheduler answers at {scheduler} ({error}); write it like "
            "tcp://10.0.0.1:8786, as `dask scheduler` prints it"
        ) from None
    return Cluster(client, None, client.dashboard_link if has_dashboard() else "")


def _local(stack: ExitStack, count: int) -> Cluster:
    started = LocalWorkers(count)
    stack.callback(started.end)
    from distributed import Client, LocalCluster

    has_page = has_dashboard()
    local = stack.enter_context(
        LocalCluster(
            n_workers=0,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    )
    client = stack.enter_context(Client(local))
    stack.callback(started.end)  # before the scheduler, so that none is started anew
    started.begin(local.scheduler_address)
    return Cluster(client, started, local.dashboard_link if has_page else "")


def _silence() -> None:
    """Dask logs what happens to workers and the scheduler; the sweep says it in its own words."""
    import distributed  # noqa: F401 - it sets the levels of its logs

    for name in ("distributed", "distributed.scheduler", "distributed.core", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@dataclass
class _Process:
    process: subprocess.Popen[str]
    errors: IO[bytes]
    """What it wrote to stderr."""
    started: float = field(default_factory=time.monotonic)


class LocalWorkers:
    """Worker processes on this machine."""

    def __init__(self, count: int) -> None:
        """Starts them. They import their modules while the scheduler starts."""
        self._processes = [_start() for _ in range(count)]
        self._address: str | None = None
        self._early_ends = 0
        self.restarted = 0
        """How many were started anew."""

    @property
    def pids(self) -> list[int]:
        return [own.process.pid for own in self._processes]

    def begin(self, address: str) -> None:
        """Lets them work for this scheduler."""
        self._address = address
        for own in self._processes:
            _tell(own, address)

    def revive(self) -> None:
        for place, own in enumerate(self._processes):
            if own.process.poll() is None or self._address is None:
                continue
            self._count_early(own)
            _close(own)
            self._processes[place] = anew = _start()
            _tell(anew, self._address)
            self.restarted += 1

    def end(self) -> None:
        """Ends them."""
        for own in self._processes:
            with suppress(OSError):
                own.process.stdin.close()  # type: ignore[union-attr]
        for own in self._processes:
            try:
                own.process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                own.process.kill()
                own.process.wait()
            own.errors.close()
        self._processes = []

    def _count_early(self, own: _Process) -> None:
        """A worker that ends by itself soon after its start, again and again, never works."""
        ended_itself = own.process.returncode > 0
        if not ended_itself or time.monotonic() - own.started > _EARLY_SECONDS:
            return
        self._early_ends += 1
        if self._early_ends >= _MOST_EARLY_ENDS:
            own.errors.seek(0)
            last = own.errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise FabricError(f"workers end as soon as they start: {''.join(last)}")


def _start() -> _Process:
    errors = TemporaryFile()  # noqa: SIM115  # for as long as the process lives
    process = subprocess.Popen(
        [sys.executable, "-m", "emu.sweeps.local_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        text=True,
        start_new_session=True,  # Ctrl-C is for the sweep, which then ends its workers
        env={**os.environ, **_ENVIRONMENT},
    )
    return _Process(process, errors)


_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def _tell(own: _Process, address: str) -> None:
    with suppress(OSError):  # it has died already
        stdin: Any = own.process.stdin
        stdin.write(f"{address}\n")
        stdin.flush()


def _close(own: _Process) -> None:
    with suppress(OSError):
        own.process.stdin.close()  # type: ignore[union-attr]
    own.errors.close()
