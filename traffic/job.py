"""A job: ranks that compute a collective together, their buffers, and the expected results.

`size_bytes` is the size that nccl-tests prints: that of one rank's buffer. For all-gather this is
the gathered buffer, for reduce-scatter the buffer that is scattered. There are n ranks, and
`pieces_of` cuts the pieces:

    kind              a rank's buffer at first          in the end
    all-reduce        [ values             ]            [ sum over all ranks ]
    reduce-scatter    [ values             ]            piece r: the sum over all ranks
    all-gather        piece r: its own values           [ piece 0 of 0, piece 1 of 1, ... ]
    broadcast         [ values             ]            [ the root's values ]
    all-to-all        [ values ][ room      ]           in the room at s: piece r of rank s

Values are small whole numbers as float32. Their sums are exact in any order, so results are checked
by comparing bits, as in nccl-tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

FLOAT_BYTES = 4
_LARGEST_VALUE = 8

Floats = NDArray[np.float32]


class Kind(StrEnum):
    """The kind of collective."""

    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    BROADCAST = "broadcast"
    ALL_TO_ALL = "all-to-all"


@dataclass(frozen=True)
class Job:
    """One collective. `name` is that of its traffic entry."""

    name: str
    kind: Kind
    algorithm: str
    ranks: tuple[str, ...]
    size_bytes: int
    root: int = 0
    """The rank that a broadcast starts from."""

    @property
    def buffer_bytes(self) -> int:
        """The memory of each rank in bytes."""
        if self.kind is not Kind.ALL_TO_ALL:
            return self.size_bytes
        _, sizes = pieces_of(0, self.size_bytes, len(self.ranks))
        return self.size_bytes + len(self.ranks) * int(sizes.max())

    @property
    def bus_factor(self) -> float:
        """Bus bandwidth over algorithm bandwidth, as nccl-tests defines it (PERFORMANCE.md): the
        share of `size_bytes` that each rank sends, for any algorithm."""
        n = len(self.ranks)
        if self.kind is Kind.BROADCAST:
            return 1.0
        return (2 if self.kind is Kind.ALL_REDUCE else 1) * (n - 1) / n


@dataclass(frozen=True)
class Step:
    """Work of all ranks that ends when the last of it does; `name` is that of its traffic entry."""

    name: str
    work_alone_ns: int
    """The duration of the work alone, without the time for messages."""
    bytes_for: dict[str, int]
    """Purpose -> bytes that all ranks send for it."""


@dataclass(frozen=True)
class Result:
    """Values that must be in a rank's buffer from byte `at` on."""

    at: int
    values: Floats


def pieces_of(at: int, size_bytes: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places and sizes of the pieces of a part of a buffer.

    A piece has whole float32s. If they do not divide evenly, the first pieces have one more.
    """
    each, more = divmod(size_bytes // FLOAT_BYTES, count)
    sizes = (each + (np.arange(count) < more)) * FLOAT_BYTES
    return at + np.cumsum(sizes) - sizes, sizes


def first_values(job: Job, random: np.random.Generator) -> list[Floats]:
    """The contents of each rank's buffer before the first message."""
    count = job.buffer_bytes // FLOAT_BYTES
    return [
        random.integers(-_LARGEST_VALUE, _LARGEST_VALUE, count, endpoint=True).astype(np.float32)
        for _ in job.ranks
    ]


def results(job: Job, first: list[Floats]) -> list[list[Result]]:
    """The values that each rank must have in the end."""
    ranks = range(len(job.ranks))
    at, sizes = pieces_of(0, job.size_bytes, len(ranks))

    def piece(values: Floats, which: int) -> Floats:
        return values[at[which] // FLOAT_BYTES :][: sizes[which] // FLOAT_BYTES]

    match job.kind:
        case Kind.ALL_REDUCE:
            return [[Result(0, _sum(first))]] * len(ranks)
        case Kind.REDUCE_SCATTER:
            total = _sum(first)
            return [[Result(int(at[rank]), piece(total, rank))] for rank in ranks]
        case Kind.ALL_GATHER:
            own = [piece(values, rank) for rank, values in enumerate(first)]
            return [[Result(0, np.concatenate(own))]] * len(ranks)
        case Kind.BROADCAST:
            return [[Result(0, first[job.root])]] * len(ranks)
        case Kind.ALL_TO_ALL:
            return [
                [
                    Result(job.size_bytes + sender * int(sizes[rank]), piece(first[sender], rank))
                    for sender in ranks
                    if sender != rank
                ]
                for rank in ranks
            ]


def _sum(values: list[Floats]) -> Floats:
    total: Floats = np.sum(values, axis=0, dtype=np.float32)
    return total
