"""A collective as a graph of operations: its kind, algorithm, chunks and channels.

    buffer       [                                                        ]
    chunks       [      ][      ][      ][      ][      ][      ][      ]      each on its own
    channels        1       2       1       2       1       2       1          queue pairs, NICs

Chunks are pipelined as in NCCL. Each goes through all steps of the algorithm by itself, so that a
rank forwards one chunk while it receives the next. Without chunks, the algorithm decides the
length of messages. Channels are sets of queue pairs; chunks are distributed over them in turn. Each
channel enters and leaves a server through another NIC (see `channels`), and a fabric may route
channels differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from traffic.collectives import chain, exchange, halving_doubling, hierarchical, ring, tree
from traffic.collectives.channels import Servers, are_alike, in_a_row, nics_of, ring_of
from traffic.collectives.schedule import Schedule, Waits, in_groups
from traffic.graph import Column, OperationGraph
from traffic.job import FLOAT_BYTES, Job, Kind, pieces_of

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
    """How a collective is cut into messages."""

    chunk_bytes: int | None = None
    """The longest message in bytes; None: the algorithm decides."""
    channels: int = 1


def collective(
    job: Job,
    *,
    cut: Cut = Cut(),
    servers: Servers | None = None,
    start_ns: int = 0,
    priority: int | None = None,
) -> OperationGraph:
    """The operations of a job. `servers`: the ranks that share a server; by default each rank has
    its own.

    Raises ValueError when the ranks do not suit the algorithm.
    """
    schedule = Schedule()
    add_collective(schedule, job, np.arange(len(job.ranks)), cut=cut, servers=servers)
    return schedule.graph(job.name, job.ranks, start_ns=start_ns, priority=priority, jobs=(job,))


def add_collective(
    schedule: Schedule,
    job: Job,
    ranks: Column,
    *,
    cut: Cut = Cut(),
    servers: Servers | None = None,
    after: Waits = (),
) -> Waits:
    """Adds a job to other operations, between these ones. Returns what its ranks wait for."""
    servers = servers or in_a_row(len(ranks), 1)
    check(job, servers)
    waits: list[Column] = []
    if job.algorithm in _TREES:
        for chunks in _of_channels(job, cut, servers):
            waits += _TREES[job.algorithm](schedule, ranks, chunks, servers, after)
        return waits
    for number, chunk in enumerate(_chunks(job, cut, servers)):
        waits += chunk(schedule, ranks, after=after, channel=number % cut.channels)
    return waits


def check(job: Job, servers: Servers) -> None:
    """Raises ValueError when the ranks do not suit the algorithm."""
    if job.algorithm not in ALGORITHMS[job.kind]:
        raise ValueError(f"there is no {job.algorithm} {job.kind}")
    if job.algorithm == "hierarchical" and not are_alike(servers):
        raise ValueError(
            f"{len(job.ranks)} ranks are not a whole number of servers of {len(servers[0])} GPUs"
        )


def channels_for(job: Job, servers: Servers) -> int:
    """The number of channels that use all NICs: one for each NIC of a server, for algorithms that
    use one or two NICs for each channel. A buffer with fewer floats has fewer channels."""
    if job.algorithm not in _BY_CHANNELS:
        return 1
    floats = job.size_bytes // FLOAT_BYTES // len(job.ranks)
    return max(1, min(nics_of(servers), floats))


def chunks_of(job: Job, cut: Cut, servers: Servers) -> int:
    """The number of chunks of a job's buffer: the same number on each channel."""
    if cut.chunk_bytes is None:
        return cut.channels
    pieces = _CUT_INTO.get(job.algorithm)
    if job.algorithm == "hierarchical":
        pieces = len(servers[0])
    longest = -(-job.size_bytes // (pieces or len(job.ranks)))
    chunks = -(-longest // cut.chunk_bytes)
    return cut.channels * -(-chunks // cut.channels)


def _of_channels(job: Job, cut: Cut, servers: Servers) -> Iterator[tree.Chunks]:
    """The chunks of each channel."""
    at, sizes = pieces_of(0, job.size_bytes, chunks_of(job, cut, servers))
    for channel in range(cut.channels):
        own = slice(channel, None, cut.channels)
        yield tree.Chunks(at[own], sizes[own], channel)


def _chunks(job: Job, cut: Cut, servers: Servers) -> Iterator[Callable[..., Waits]]:
    """Adds the job chunk by chunk, for algorithms other than trees."""
    count = chunks_of(job, cut, servers)
    orders = [_order(job, servers, channel) for channel in range(cut.channels)]
    begun: list[list[Waits]] = [[] for _ in range(cut.channels)]
    if job.kind in _OF_PIECES:
        whole = pieces_of(0, job.size_bytes, len(job.ranks))
        for number, (at, sizes) in enumerate(_across(whole, count)):
            order = orders[number % cut.channels]
            algorithm = partial(_OF_PIECES[job.kind], **_room(job, whole, at))
            yield _in_order(order, partial(algorithm, pieces=(at[order], sizes[order])))
        return
    for number, (at, size) in enumerate(zip(*pieces_of(0, job.size_bytes, count), strict=True)):
        order = orders[number % cut.channels]
        whole_buffer = _whole(job, servers, order, begun[number % cut.channels])
        yield _in_order(order, partial(whole_buffer, at=int(at), size_bytes=int(size)))


def _order(job: Job, servers: Servers, channel: int) -> Column:
    """The ranks in the order of a channel's ring, for algorithms that use rings."""
    if job.algorithm in _BY_CHANNELS:
        return ring_of(servers, channel)
    return np.arange(len(job.ranks))


def _in_order(order: Column, algorithm: Callable[..., Waits]) -> Callable[..., Waits]:
    """The algorithm with its ranks in the order `order`."""

    def ordered(schedule: Schedule, ranks: Column, after: Waits, channel: int) -> Waits:
        def own(waits: Waits) -> Waits:
            return algorithm(schedule, ranks[order], after=waits, channel=channel)

        return in_groups(order, own, [np.broadcast_to(wait, ranks.shape) for wait in after])

    return ordered


def _across(whole: ring.Pieces, count: int) -> Iterator[ring.Pieces]:
    """The first chunk of every piece, then the second of every piece, and so on."""
    cuts = [pieces_of(int(at), int(size), count) for at, size in zip(*whole, strict=True)]
    starts, sizes = np.array(cuts).transpose(1, 2, 0)
    return zip(starts, sizes, strict=True)


def _room(job: Job, whole: ring.Pieces, at: Column) -> dict[str, ring.Pieces]:
    """All-to-all: received pieces are placed behind the sent ones, one place for each sender."""
    if job.kind is not Kind.ALL_TO_ALL:
        return {}
    starts, sizes = whole
    return {"room": (job.size_bytes + at - starts, sizes)}


def _whole(job: Job, servers: Servers, order: Column, begun: list[Waits]) -> Callable[..., Waits]:
    """The algorithm, if it works on any part of the buffer."""
    algorithms: dict[str, Callable[..., Waits]] = {
        "ring": ring.all_reduce,
        "halving-doubling": halving_doubling.all_reduce,
        "hierarchical": partial(hierarchical.all_reduce, servers=servers, begun=begun),
        "chain": partial(chain.broadcast, root=int(np.flatnonzero(order == job.root)[0])),
    }
    return algorithms[job.algorithm]


_TREES: dict[str, Callable[..., Waits]] = {
    "tree": tree.all_reduce,
    "double-tree": tree.double_all_reduce,
}
AROUND = ("ring", "chain")
"""Algorithms that go around a ring of all ranks."""
_BY_CHANNELS = (*AROUND, *_TREES)
"""Algorithms whose channels use one or two NICs of a server. Others use all NICs."""
_OF_PIECES: dict[Kind, Callable[..., Waits]] = {
    Kind.REDUCE_SCATTER: ring.reduce_scatter,
    Kind.ALL_GATHER: ring.all_gather,
    Kind.ALL_TO_ALL: exchange.all_to_all,
}
"""Kinds of collective in which every rank has its own piece."""


@dataclass(frozen=True)
class Amount:
    """The size of a job's graph, known before it is built."""

    flows: int
    messages: int
    bytes: int


def amount_of(job: Job, cut: Cut, servers: Servers) -> Amount:
    """All algorithms send the same bytes, in different numbers of messages."""
    n, both_ways = len(job.ranks), 2 if job.kind is Kind.ALL_REDUCE else 1
    flows, messages = _pairs_and_messages(job, servers)
    chunks = chunks_of(job, cut, servers)
    return Amount(flows * cut.channels, messages * chunks, both_ways * (n - 1) * job.size_bytes)


def _pairs_and_messages(job: Job, servers: Servers) -> tuple[int, int]:
    """For one chunk: the number of sending pairs of ranks, and the number of messages."""
    n, both_ways = len(job.ranks), 2 if job.kind is Kind.ALL_REDUCE else 1
    power = 1 << (n.bit_length() - 1)
    exchanges, folded = power * (power.bit_length() - 1), 2 * (n - power)
    between, inside = len(servers), len(servers[0])
    return {
        "ring": (n, both_ways * n * (n - 1)),
        "tree": (2 * (n - 1), 2 * (n - 1)),
        "double-tree": (4 * (n - 1), 4 * (n - 1)),
        "halving-doubling": (exchanges + folded, 2 * exchanges + folded),
        "hierarchical": (
            n * ((inside > 1) + (between > 1)),
            2 * n * (inside - 1 + between - 1),
        ),
        "chain": (n - 1, n - 1),
        "direct": (n * (n - 1), n * (n - 1)),
    }[job.algorithm]
