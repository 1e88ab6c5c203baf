"""Commands that several processes share, if mpirun started them (emu/runtime/mpi.py).

Most runs are in one process, and need no module for that.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from emu.mpi_environment import mpi_rank, mpi_ranks


def assists() -> bool:
    """Whether this is another rank than 0. Then it has taken part in all runs of rank 0."""
    if mpi_rank() == 0:
        return False
    from emu.runtime.mpi import assist

    assist()
    return True


def first_rank() -> AbstractContextManager[None]:
    """For all that rank 0 does until its last run is over."""
    if mpi_ranks() == 1:
        return nullcontext()
    from emu.runtime.mpi import first_rank

    return first_rank()
