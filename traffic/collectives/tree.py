"""All-reduce up and down a binary tree, or two of them (Sanders, Speck, Träff, ParCo'09).

Sums go up to the root, and from there back to all ranks: 2·ceil(log2 n) steps, which is few and
suits small messages. Positions 1 to n are numbered in order, so that odd ones are leaves:

              4                   parent of p, which ends in h zero bits: the h-th bit
          ╱       ╲               cleared, the next one set; while that is beyond n,
        2           6             the parent's parent
      ╱   ╲       ╱   ╲
    1       3   5       7

A position is a server. If a server has several GPUs, one of them has the position, and the others
form a chain below it, as in NCCL (see `channels`).

An inner rank receives the buffer three times (twice up, once down), a leaf once. One tree
therefore leaves the bandwidth of leaves unused and needs 3·S/B. Two trees carry half of the buffer
each. The second is numbered in reverse (n even) or shifted by one (n odd), so that the leaves of
one tree are inner ranks of the other. Every rank then sends and receives the buffer at most twice:
2·S/B.

A tree is fast for large buffers only with chunks: one level sends a chunk while another level
sends the next. The latency of the first chunk up and down is added: 2·floor(log2 n) messages one
after another.

A rank may have sent at most 8 chunks that its neighbour has not forwarded yet: NCCL's connections
have so many slots (NCCL_STEPS). Without this limit all leaves would send their whole buffers at
once. The sums on their way down would then wait behind these buffers in the queues of inner ranks,
and NICs that are paused or lack credit would delay their traffic to other ranks as well:
head-of-line blocking. With 8 ranks, one tree would take 4.1·S/B and two trees 2.3·S/B. A slot is
free again as soon as the neighbour's message is acknowledged. NCCL's receiver sends a message at
that time, which takes no time here.

With chunks of 16 KB, one tree takes 3.04·S/B plus the latency of the first chunk, on every fabric.
If eight chunks of three neighbours exceed a port's buffer, some of the blocking returns: with
64 KB, 3.2·S/B under PFC and 3.5 with InfiniBand's credits; two trees take at most 2.04.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traffic.collectives import channels
from traffic.collectives.channels import Servers
from traffic.collectives.schedule import NOBODY, SLOTS, Schedule, Waits
from traffic.graph import Column
from traffic.job import pieces_of


@dataclass(frozen=True)
class Chunks:
    """The parts of a buffer that one channel carries."""

    at: Column
    size_bytes: Column
    channel: int

    def halves(self) -> tuple[Chunks, Chunks]:
        """The first halves of the chunks, and the second halves."""
        cuts = [pieces_of(*part, 2) for part in zip(self.at, self.size_bytes, strict=True)]
        at, sizes = np.array(cuts).reshape(-1, 2, 2).transpose(1, 2, 0)
        return replace(self, at=at[0], size_bytes=sizes[0]), replace(
            self, at=at[1], size_bytes=sizes[1]
        )


def all_reduce(
    schedule: Schedule, ranks: Column, chunks: Chunks, servers: Servers, after: Waits = ()
) -> Waits:
    """Gives every rank the sum of a channel's chunks, by one tree."""
    (parents,) = trees_of("tree", servers, chunks.channel)
    return _Tree(schedule, ranks, parents, chunks).play(after)


def double_all_reduce(
    schedule: Schedule, ranks: Column, chunks: Chunks, servers: Servers, after: Waits = ()
) -> Waits:
    """The same by two trees, each for half of every chunk and with its own queue pairs."""
    trees = trees_of("double-tree", servers, chunks.channel)
    done: list[Column] = []
    for number, (half, parents) in enumerate(zip(chunks.halves(), trees, strict=True)):
        own = replace(half, channel=2 * chunks.channel + number)
        done += _Tree(schedule, ranks, parents, own).play(after)
    return done


def trees_of(algorithm: str, servers: Servers, channel: int) -> list[Column]:
    """The trees of a channel: the parent of each rank, NOBODY for the root."""
    between = [parents_of(len(servers))]
    if algorithm == "double-tree":
        order = second_tree(len(servers))
        second = np.full(len(servers), NOBODY)
        second[order] = np.append(order, NOBODY)[between[0]]
        between.append(second)
    return [channels.parents_of(servers, channel, parents) for parents in between]


def parents_of(count: int) -> Column:
    """The parent of each position 0 to count - 1; NOBODY for the root."""
    return np.array([_parent(position, count) - 1 for position in range(1, count + 1)])


def _parent(position: int, count: int) -> int:
    """The parent of a position that is numbered from 1; 0 for the root."""
    bit = position & -position
    while 2 * bit <= count:
        above = (position & ~bit) | 2 * bit
        if above <= count:
            return above
        position, bit = above, 2 * bit
    return 0


def second_tree(count: int) -> Column:
    """The rank of each position in the second tree."""
    places = np.arange(count)
    return places[::-1] if count % 2 == 0 else np.roll(places, -1)


def levels_of(parents: Column) -> list[Column]:
    """The positions by their distance from the root, farthest first."""
    levels = [np.flatnonzero(parents == NOBODY)]
    while len(levels[-1]):
        levels.append(np.flatnonzero(np.isin(parents, levels[-1])))
    return levels[-2::-1]


def children_of(parents: Column) -> Column:
    """The children of each position, one row for each, filled up with NOBODY."""
    below: list[list[int]] = [[] for _ in parents]
    for place, parent in enumerate(parents.tolist()):
        if parent != NOBODY:
            below[parent].append(place)
    most = max(map(len, below))
    return np.array([row + [NOBODY] * (most - len(row)) for row in below]).reshape(-1, most)


@dataclass(frozen=True)
class _Tree:
    """A channel's chunks, and the tree that they go up and down.

    Messages are in tables with a row for each chunk and a column for each position. One more column
    is filled with NOBODY, so that the index NOBODY is valid.
    """

    schedule: Schedule
    ranks: Column
    parents: Column
    chunks: Chunks

    def play(self, after: Waits) -> Waits:
        """Sends all chunks up and down. Returns what each position waits for at the end."""
        children = children_of(self.parents)
        first = [np.append(np.broadcast_to(wait, self.ranks.shape), NOBODY) for wait in after]
        up, down = self._table(), self._table()
        *levels, root = levels_of(self.parents)
        for level in levels:
            summands = [up[:, child] for child in children[level].T]
            waits = [*(wait[level] for wait in first), *summands]
            up[:, level] = self._send(level, self.parents[level], waits, adds=True)
        for level in reversed(levels):
            above = self.parents[level]
            is_below_root = above == root
            sums = [np.where(is_below_root, up[:, child], NOBODY) for child in children[above].T]
            own = [np.where(is_below_root, wait[above], NOBODY) for wait in first]
            down[:, level] = self._send(above, level, [*own, *sums, down[:, above]], adds=False)
        at_root = self._at_root(up, children)
        self._limit(up[:, :-1], down, children)
        return [*after, *down[:, :-1], *(row for table in at_root for row in table)]

    def _table(self) -> Column:
        return np.full((len(self.chunks.at), len(self.ranks) + 1), NOBODY)

    def _at_root(self, table: Column, children: Column) -> list[Column]:
        """The columns of the root's children in a table, each moved to the root's column."""
        is_root = self.parents == NOBODY
        below = children[np.flatnonzero(is_root)[0]]
        return [np.where(is_root, table[:, [child]], NOBODY) for child in below]

    def _limit(self, up: Column, down: Column, children: Column) -> None:
        """Makes a chunk wait until the neighbour has forwarded the previous chunk of its slot."""
        sends = np.flatnonzero(self.parents != NOBODY)
        for passed in (up, *self._at_root(down, children)):
            self._reuse(up[:, sends], passed[:, self.parents[sends]])
        for child in children.T:
            self._reuse(down[:, sends], down[:, child[sends]])

    def _reuse(self, sent: Column, passed: Column) -> None:
        self.schedule.wait(sent[SLOTS:].ravel(), passed[:-SLOTS].ravel())

    def _send(self, src: Column, dst: Column, waits: Waits, *, adds: bool) -> Column:
        """Sends all chunks, each when the messages that it needs have arrived."""
        chunks, shape = self.chunks, (len(self.chunks.at), len(src))
        at = np.repeat(chunks.at, len(src))
        return self.schedule.send(
            np.broadcast_to(self.ranks[src], shape).ravel(),
            np.broadcast_to(self.ranks[dst], shape).ravel(),
            np.repeat(chunks.size_bytes, len(src)),
            take=at,
            after=[np.broadcast_to(wait, shape).ravel() for wait in waits],
            channel=chunks.channel,
            **{"add" if adds else "put": at},
        ).reshape(shape)
