"""Collectives: what all ranks of a job compute together, as operations between them.

**Ring all-reduce** (Patarasuk and Yuan, JPDC'09; NCCL's ring). Every rank has a
buffer of S bytes, cut into as many pieces as there are ranks; in the end all have
the sum. In each step every rank sends one piece to its right neighbour: first its
own, then always the one that it got in the step before, with its own part added.

            step 0    step 1    step 2    step 3         4 pieces a to d, steps 0 to 5
    rank 0    a         d         c         b ...
    rank 1    b         a         d         c ...        rank r sends piece r - s in step s,
    rank 2    c         b         a         d ...        modulo the number of ranks
    rank 3    d         c         b         a ...
            └── reduce-scatter ──┘└─ all-gather ─┘

After n - 1 steps every rank has one piece complete (reduce-scatter), after n - 1
more everybody has them all (all-gather). So a rank sends 2(n - 1) pieces, that is
2(n - 1)/n * S bytes, and step s of a rank starts when step s - 1 of its left
neighbour has been delivered. Adding takes no time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traffic.graph import Column, OperationGraph, Verb
from traffic.patterns import Pairs, flows


def ring_all_reduce(
    name: str,
    ranks: Sequence[str],
    size_bytes: int,
    *,
    start_ns: int = 0,
    priority: int | None = None,
) -> OperationGraph:
    """All-reduce of a buffer of `size_bytes` around the ring of `ranks`, two or more.

    One flow for each rank, to its right neighbour, of one WRITE a step. Where the ranks
    do not divide the buffer evenly, the first pieces are a byte longer than the others.
    """
    steps = ring_steps(len(ranks))
    rank = np.repeat(np.arange(len(ranks)), steps)
    step = np.tile(np.arange(steps), len(ranks))
    later = np.flatnonzero(step)
    left = (rank - 1) % len(ranks)
    return OperationGraph(
        flows=flows(name, ring_pairs(ranks), Verb.WRITE, operations_each=steps, priority=priority),
        size_bytes=_pieces(size_bytes, len(ranks))[(rank - step) % len(ranks)],
        not_before_ns=np.full(len(rank), start_ns),
        earlier=(left * steps + step - 1)[later],
        later=later,
    )


def ring_steps(ranks: int) -> int:
    """Messages that each of so many ranks sends: a reduce-scatter's, then an all-gather's."""
    return 2 * (ranks - 1)


def ring_pairs(ranks: Sequence[str]) -> Pairs:
    """Every rank and its right neighbour; the last one's is the first."""
    return list(zip(ranks, [*ranks[1:], *ranks[:1]], strict=True))


def _pieces(size_bytes: int, count: int) -> Column:
    """Sizes of the pieces of a buffer."""
    size, longer = divmod(size_bytes, count)
    return size + (np.arange(count) < longer)
