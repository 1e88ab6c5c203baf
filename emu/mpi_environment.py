"""Whether this process is one of several that Open MPI's `mpirun` started, as its environment says.

To look costs nothing: mpi4py is imported only where there are several.
"""

from __future__ import annotations

import os


def mpi_ranks() -> int:
    """How many processes mpirun started; 1 without it."""
    return int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))


def mpi_rank() -> int:
    """The number of this process among them, from 0 on."""
    return int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))


def ranks_of_mpich() -> int:
    """How many processes MPICH's mpiexec started; 1 without it. Open MPI in them takes each to be
    alone."""
    return int(os.environ.get("PMI_SIZE", "1"))
