"""A collective as a graph of operations: its kind, its algorithm, how it is cut and pipelined.

    buffer       [                                                        ]
    chunks       [      ][      ][      ][      ][      ][      ][      ]      each on its own
    channels        1       2       1       2       1       2       1          queue pairs

Chunks are pipelined as in NCCL: each goes through all steps of the algorithm by itself, so
that a rank passes one on while the next one comes in. Without chunks, a message is as long
as the algorithm makes it. Channels are sets of queue pairs which chunks take turns on, so
that a fabric can route them differently; they share the NIC's rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from traffic.collectives import chain, exchange, halving_doubling, hierarchical, ring, tree
from traffic.collectives.schedule import Schedule, Waits
from traffic.graph import Column, OperationGraph
from traffic.job import Job, Kind, pieces_of

ALGORITHMS: dict[Kind, tuple[str, ...]] = {
    Kind.ALL_REDUCE: ("ring", "tree", "double-tree", "halving-doubling", "hierarchical"),
    Kind.REDUCE_SCATTER: ("ring",),
    Kind.ALL_GATHER: ("ring",),
    Kind.BROADCAST: ("chain",),
    Kind.ALL_TO_ALL: ("direct",),
}

_CUT_INTO = {"tree": 1, "double-tree": 2, "halving-doubling": 2, "chain": 1}
"""The longest message of an algorithm is such a part of a chunk; others: a piece for each rank."""


@dataclass(frozen=True)
class Cut:
    """How a collective is cut."""

    chunk_bytes: int | None = None
    """The longest message; None: whatever the algorithm makes it."""
    channels: int = 1


def collective(
    job: Job,
    *,
    cut: Cut = Cut(),
    gpus: int = 1,
    start_ns: int = 0,
    priority: int | None = None,
) -> OperationGraph:
    """The operations of a job. `gpus`: ranks in a row that are a server, for `hierarchical`.

    Raises ValueError when the ranks do not suit the algorithm.
    """
    schedule = Schedule()
    add_collective(schedule, job, np.arange(len(job.ranks)), cut=cut, gpus=gpus)
    return schedule.graph(job.name, job.ranks, start_ns=start_ns, priority=priority, jobs=(job,))


def add_collective(
    schedule: Schedule,
    job: Job,
    ranks: Column,
    *,
    cut: Cut = Cut(),
    gpus: int = 1,
    after: Waits = (),
) -> Waits:
    """The same among other operations, between these numbers; what its ranks wait for then."""
    check(job, gpus)
    waits: list[Column] = []
    for number, chunk in enumerate(_chunks(job, cut, gpus)):
        waits += chunk(schedule, ranks, after=after, channel=number % cut.channels)
    return waits


def check(job: Job, gpus: int) -> None:
    """Raises ValueError when the ranks do not suit the algorithm."""
    if job.algorithm not in ALGORITHMS[job.kind]:
        raise ValueError(f"there is no {job.algorithm} {job.kind}")
    if job.algorithm == "hierarchical" and len(job.ranks) % gpus:
        raise ValueError(f"{len(job.ranks)} ranks are no whole number of servers of {gpus} GPUs")


def chunks_of(job: Job, cut: Cut, gpus: int = 1) -> int:
    """Into how many chunks a job's buffer is cut."""
    if cut.chunk_bytes is None:
        return cut.channels
    pieces = _CUT_INTO.get(job.algorithm, gpus if job.algorithm == "hierarchical" else None)
    longest = -(-job.size_bytes // (pieces or len(job.ranks)))
    return max(cut.channels, -(-longest // cut.chunk_bytes))


def _chunks(job: Job, cut: Cut, gpus: int) -> Iterator[Callable[..., Waits]]:
    """The job chunk by chunk."""
    count = chunks_of(job, cut, gpus)
    if job.kind in _OF_PIECES:
        whole = pieces_of(0, job.size_bytes, len(job.ranks))
        for at, sizes in _across(whole, count):
            yield partial(_OF_PIECES[job.kind], pieces=(at, sizes), **_room(job, whole, at))
        return
    for at, size in zip(*pieces_of(0, job.size_bytes, count), strict=True):
        yield partial(_whole(job, gpus), at=int(at), size_bytes=int(size))


def _across(whole: ring.Pieces, count: int) -> Iterator[ring.Pieces]:
    """The first chunk of every piece, then the second of every piece, and so on."""
    cuts = [pieces_of(int(at), int(size), count) for at, size in zip(*whole, strict=True)]
    starts, sizes = np.array(cuts).transpose(1, 2, 0)
    return zip(starts, sizes, strict=True)


def _room(job: Job, whole: ring.Pieces, at: Column) -> dict[str, ring.Pieces]:
    """All-to-all: behind what is sent, with as much for each sender as it has for us."""
    if job.kind is not Kind.ALL_TO_ALL:
        return {}
    starts, sizes = whole
    return {"room": (job.size_bytes + at - starts, sizes)}


def _whole(job: Job, gpus: int) -> Callable[..., Waits]:
    """The algorithm, where it works on any part of the buffer."""
    algorithms: dict[str, Callable[..., Waits]] = {
        "ring": ring.all_reduce,
        "tree": tree.all_reduce,
        "double-tree": tree.double_all_reduce,
        "halving-doubling": halving_doubling.all_reduce,
        "hierarchical": partial(hierarchical.all_reduce, gpus=gpus),
        "chain": partial(chain.broadcast, root=job.root),
    }
    return algorithms[job.algorithm]


_OF_PIECES: dict[Kind, Callable[..., Waits]] = {
    Kind.REDUCE_SCATTER: ring.reduce_scatter,
    Kind.ALL_GATHER: ring.all_gather,
    Kind.ALL_TO_ALL: exchange.all_to_all,
}
"""Kinds in which every rank has a piece of its own."""


@dataclass(frozen=True)
class Amount:
    """What a job makes, known before it is made."""

    flows: int
    messages: int
    bytes: int


def amount_of(job: Job, cut: Cut, gpus: int = 1) -> Amount:
    """Every algorithm sends the same bytes, in its own number of messages."""
    n, both_ways = len(job.ranks), 2 if job.kind is Kind.ALL_REDUCE else 1
    flows, messages = _pairs_and_messages(job, gpus)
    chunks = chunks_of(job, cut, gpus)
    return Amount(flows * cut.channels, messages * chunks, both_ways * (n - 1) * job.size_bytes)


def _pairs_and_messages(job: Job, gpus: int) -> tuple[int, int]:
    """Of a chunk: pairs of ranks that send to each other, and messages."""
    n, both_ways = len(job.ranks), 2 if job.kind is Kind.ALL_REDUCE else 1
    power = 1 << (n.bit_length() - 1)
    exchanges, folded = power * (power.bit_length() - 1), 2 * (n - power)
    servers = n // gpus
    return {
        "ring": (n, both_ways * n * (n - 1)),
        "tree": (2 * (n - 1), 2 * (n - 1)),
        "double-tree": (4 * (n - 1), 4 * (n - 1)),
        "halving-doubling": (exchanges + folded, 2 * exchanges + folded),
        "hierarchical": (
            n * ((gpus > 1) + (servers > 1)),
            2 * n * (gpus - 1 + servers - 1),
        ),
        "chain": (n - 1, n - 1),
        "direct": (n * (n - 1), n * (n - 1)),
    }[job.algorithm]
