"""An all-reduce by MPI across the hosts of a lab, compared with numpy's sum.

emu up topologies/incast.emu.yml
emu mpirun -n 8 -- .venv/bin/python examples/mpi_all_reduce.py
"""

import numpy as np
from mpi4py import MPI

LENGTH = 50_000


def gradient(rank: int) -> np.ndarray:
    """What a rank contributes."""
    return np.random.default_rng(rank).standard_normal(LENGTH)


world = MPI.COMM_WORLD
total = np.empty(LENGTH)
world.Barrier()
began = MPI.Wtime()
world.Allreduce(gradient(world.rank), total)
took = MPI.Wtime() - began

right = np.allclose(total, sum(map(gradient, range(world.size))))
reports = world.gather((MPI.Get_processor_name(), bool(right)))
if world.rank == 0:
    hosts = sorted({host for host, _ in reports})
    verdict = "right" if all(right for _, right in reports) else "WRONG"
    print(
        f"{world.size} ranks on {', '.join(hosts)}: {verdict}, in {took * 1e3:.1f} ms by its clock"
    )
