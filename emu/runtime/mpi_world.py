"""The processes (ranks) that `mpirun` started, and how they end."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from emu.errors import EmuError, ExitCode, HostError
from emu.mpi_environment import mpi_rank
from emu.resources import exhausted_resource
from emu.runtime.heartbeat import Heartbeat

T = TypeVar("T")
PIECE_BYTES = 1 << 26
"""Of captures and memory, sent at a time."""


class World:
    """The ranks of this run. Raises HostError where MPI is missing, or is not fit for use."""

    def __init__(self) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise HostError(
                f"{_who()}: mpirun started several processes, and mpi4py cannot be imported "
                f"({error})",
                remedy="apt install python3-mpi4py openmpi-bin, or leave mpirun out: one process "
                "gives the same results, with --threads on all cores",
            ) from None
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise HostError(
                f"{_who()}: this MPI can be called by one thread only",
                remedy="use Open MPI 4 or later",
            )
        self.mpi: Any = MPI
        self.all: Any = MPI.COMM_WORLD
        self.rank: int = self.all.rank
        self.ranks: int = self.all.size
        self._machines: list[str] = self.all.allgather(socket.gethostname())
        self._heartbeat = Heartbeat(MPI, self._abort_for_silence)

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def tell(self, task: T | None) -> T | None:
        """Gives all ranks the task of rank 0. None: there is nothing more to do."""
        told: T | None = self.all.bcast(task)
        return told

    def end(self) -> None:
        """After the last exchange. All ranks call this."""
        self._heartbeat.end()
        self.mpi.Finalize()

    def abort(self, error: BaseException) -> NoReturn:
        """Ends all ranks, since the others would wait for this one."""
        known = exhausted_resource(error) if isinstance(error, Exception) else None
        shown = known or error
        text = str(shown) if isinstance(shown, EmuError) else repr(shown)
        code = shown.exit_code if isinstance(shown, EmuError) else ExitCode.FAILED
        print(f"{_who()}: {text}", file=sys.stderr, flush=True)
        self.all.Abort(int(code))
        sys.exit(code)

    def _abort_for_silence(self, rank: int, seconds: float) -> None:
        """Ends all ranks, since nothing comes from this one."""
        print(
            f"{_who()}: rank {rank} on {self._machines[rank]} has been silent for "
            f"{seconds:g} s, so that the run cannot go on: the process was stopped, its "
            "machine hangs, or the network between them does",
            file=sys.stderr,
            flush=True,
        )
        self.all.Abort(int(ExitCode.FAILED))

    # ---- Gatherer --------------------------------------------------------------------------------

    def add_up(self, array: NDArray[Any]) -> None:
        if not array.size:
            return
        here = self.mpi.IN_PLACE if self.is_first else array
        self.all.Reduce(here, array if self.is_first else None, self.mpi.SUM)

    def collect(self, own: Iterable[T]) -> Iterator[T]:
        if self.is_first:
            return self._collected(own)
        for piece in own:
            self.all.send(piece, 0)
        self.all.send(None, 0)
        return iter(())

    def _collected(self, own: Iterable[T]) -> Iterator[T]:
        yield from own
        for rank in range(1, self.ranks):
            while (piece := self.all.recv(source=rank)) is not None:
                yield piece

    def fetch(self, array: NDArray[np.uint8], *, is_own: bool) -> None:
        owner = self.all.allreduce(self.rank if is_own else 0)
        if not owner or self.rank not in (0, owner):
            return
        for at in range(0, len(array), PIECE_BYTES):
            piece = array[at : at + PIECE_BYTES]
            if self.is_first:
                self.all.Recv(piece, owner)
            else:
                self.all.Send(piece, 0)


def _who() -> str:
    return f"rank {mpi_rank()} on {socket.gethostname()}"
