"""Latency and bandwidth between two MPI ranks by message size, as the OSU benchmarks measure them:
half of the round trip of a ping-pong, and windows of messages that the other end acknowledges.

emu up topologies/incast.emu.yml --clock exact
emu mpirun --rdma -n 2 -- .venv/bin/python examples/mpi_latency.py
"""

import numpy as np
from mpi4py import MPI

SIZES = [1, 64, 1024, 4096, 65536, 262144]
WARM_UP, TURNS, WINDOW = 2, 10, 16

world = MPI.COMM_WORLD
other = 1 - world.rank


def latency_us(size: int) -> float:
    """Half of the time that a message takes there and back."""
    data = np.zeros(size, np.uint8)
    for turn in range(WARM_UP + TURNS):
        if turn == WARM_UP:
            world.Barrier()
            began = MPI.Wtime()
        if world.rank == 0:
            world.Send(data, other)
            world.Recv(data, other)
        else:
            world.Recv(data, other)
            world.Send(data, other)
    return (MPI.Wtime() - began) / TURNS / 2 * 1e6


def bandwidth_gbps(size: int) -> float:
    """Rank 0 sends windows of messages. Rank 1 answers each window with one byte."""
    windows = [np.zeros(size, np.uint8) for _ in range(WINDOW)]
    answer = np.zeros(1, np.uint8)
    for turn in range(WARM_UP + TURNS):
        if turn == WARM_UP:
            world.Barrier()
            began = MPI.Wtime()
        if world.rank == 0:
            MPI.Request.Waitall([world.Isend(data, other) for data in windows])
            world.Recv(answer, other)
        else:
            MPI.Request.Waitall([world.Irecv(data, other) for data in windows])
            world.Send(answer, other)
    return size * WINDOW * TURNS * 8 / (MPI.Wtime() - began) / 1e9


if world.size != 2:
    raise SystemExit("two ranks measure each other: emu mpirun -n 2")
if world.rank == 0:
    print(f"{'bytes':>8}  {'latency [us]':>12}  {'bandwidth [Gbit/s]':>18}")
for size in SIZES:
    latency, bandwidth = latency_us(size), bandwidth_gbps(size)
    if world.rank == 0:
        print(f"{size:>8}  {latency:>12.2f}  {bandwidth:>18.2f}")
