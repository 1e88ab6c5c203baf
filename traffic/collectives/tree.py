"""All-reduce up and down a binary tree, or two of them (Sanders, Speck, Träff, ParCo'09).

Sums go up to the root, and from there back to everybody: 2·ceil(log2 n) steps, few where
messages are small. Positions 1 to n are numbered in order, so that odd ones are leaves:

              4                   parent of p, which ends in h zero bits: the h-th bit
          ╱       ╲               cleared, the next one set; while that is beyond n,
        2           6             the parent's parent
      ╱   ╲       ╱   ╲
    1       3   5       7

A position is a server. Where a server has several GPUs, one of them has the position and the others
hang below it in a chain, as in NCCL (see `channels`).

An inner rank receives the buffer three times (twice up, once down), a leaf once. So one
tree cannot use what leaves could send, and needs 3·S/B. With two trees, each for half of the
buffer, the second numbered the other way round (n even) or shifted by one (n odd), leaves of the
one are inner in the other, and everybody sends and receives the buffer twice at most: 2·S/B.

Only chunks make a tree fast for large buffers: a level sends one while another level
sends the next. On top comes the way of the first chunk up and down, 2·floor(log2 n) messages
one after another.

A rank may have sent 8 chunks that its neighbour has not passed on yet, and no more: NCCL's
connections have so many slots (NCCL_STEPS). Without this limit all leaves would send their whole
buffers at once. The sums that come down would then wait behind them in the queues of inner ranks,
and paused NICs (or those without credit) would hold back what goes to other ranks, too:
head-of-line blocking. Of 8 ranks one tree would take 4.1·S/B, two trees 2.3·S/B. A slot is free
again as soon as the neighbour's message is acknowledged. NCCL's receiver sends a message then,
which takes no time here.

With chunks of 16 KB one tree takes 3.04·S/B and the way of the first chunk, on every fabric. If
eight chunks of three neighbours are more than a port's buffer, some of the blocking comes back:
with 64 KB 3.2·S/B under PFC and 3.5 with InfiniBand's credits; two trees take 2.04 at most.
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
    """Parts of a buffer that one channel carries."""

    at: Column
    size_bytes: Column
    channel: int

    def halves(self) -> tuple[Chunks, Chunks]:
        """The first half of each, and the second of each."""
        cuts = [pieces_of(*part, 2) for part in zip(self.at, self.size_bytes, strict=True)]
        at, sizes = np.array(cuts).reshape(-1, 2, 2).transpose(1, 2, 0)
        return replace(self, at=at[0], size_bytes=sizes[0]), replace(
            self, at=at[1], size_bytes=sizes[1]
        )


def all_reduce(
    schedule: Schedule, ranks: Column, chunks: Chunks, servers: Servers, after: Waits = ()
) -> Waits:
    """Everybody ends up with the sum of a channel's chunks, by one tree."""
    (parents,) = trees_of("tree", servers, chunks.channel)
    return _Tree(schedule, ranks, parents, chunks).play(after)


def double_all_reduce(
    schedule: Schedule, ranks: Column, chunks: Chunks, servers: Servers, after: Waits = ()
) -> Waits:
    """The same by two trees, each for half of every chunk. Each has queue pairs of its own."""
    trees = trees_of("double-tree", servers, chunks.channel)
    done: list[Column] = []
    for number, (half, parents) in enumerate(zip(chunks.halves(), trees, strict=True)):
        own = replace(half, channel=2 * chunks.channel + number)
        done += _Tree(schedule, ranks, parents, own).play(after)
    return done


def trees_of(algorithm: str, servers: Servers, channel: int) -> list[Column]:
    """The trees of a channel: for each rank its parent, NOBODY for the root."""
    between = [parents_of(len(servers))]
    if algorithm == "double-tree":
        order = second_tree(len(servers))
        second = np.full(len(servers), NOBODY)
        second[order] = np.append(order, NOBODY)[between[0]]
        between.append(second)
    return [channels.parents_of(servers, channel, parents) for parents in between]


def parents_of(count: int) -> Column:
    """For each place 0 to count - 1 the place of its parent; NOBODY for the root."""
    return np.array([_parent(position, count) - 1 for position in range(1, count + 1)])


def _parent(position: int, count: int) -> int:
    """0 for the root."""
    bit = position & -position
    while 2 * bit <= count:
        above = (position & ~bit) | 2 * bit
        if above <= count:
            return above
        position, bit = above, 2 * bit
    return 0


def second_tree(count: int) -> Column:
    """Which rank has each place in the second tree."""
    places = np.arange(count)
    return places[::-1] if count % 2 == 0 else np.roll(places, -1)


def levels_of(parents: Column) -> list[Column]:
    """Places by their distance from the root, farthest first."""
    levels = [np.flatnonzero(parents == NOBODY)]
    while len(levels[-1]):
        levels.append(np.flatnonzero(np.isin(parents, levels[-1])))
    return levels[-2::-1]


def children_of(parents: Column) -> Column:
    """A row for each place: its children, then NOBODY."""
    below: list[list[int]] = [[] for _ in parents]
    for place, parent in enumerate(parents.tolist()):
        if parent != NOBODY:
            below[parent].append(place)
    most = max(map(len, below))
    return np.array([row + [NOBODY] * (most - len(row)) for row in below]).reshape(-1, most)


@dataclass(frozen=True)
class _Tree:
    """A channel's chunks, and the tree that they go up and down.

    What a place sends or gets is a table with a row for each chunk and a column for each place,
    and one more of NOBODY, so that column NOBODY is nobody's.
    """

    schedule: Schedule
    ranks: Column
    parents: Column
    chunks: Chunks

    def play(self, after: Waits) -> Waits:
        """All chunks up and down; what each place waits for in the end."""
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
        """What a table says of each child of the root, in the root's column."""
        is_root = self.parents == NOBODY
        below = children[np.flatnonzero(is_root)[0]]
        return [np.where(is_root, table[:, [child]], NOBODY) for child in below]

    def _limit(self, up: Column, down: Column, children: Column) -> None:
        """A chunk waits until the neighbour has passed on the one that had its slot before."""
        sends = np.flatnonzero(self.parents != NOBODY)
        for passed in (up, *self._at_root(down, children)):
            self._reuse(up[:, sends], passed[:, self.parents[sends]])
        for child in children.T:
            self._reuse(down[:, sends], down[:, child[sends]])

    def _reuse(self, sent: Column, passed: Column) -> None:
        self.schedule.wait(sent[SLOTS:].ravel(), passed[:-SLOTS].ravel())

    def _send(self, src: Column, dst: Column, waits: Waits, *, adds: bool) -> Column:
        """All chunks from places to places, each when what it waits for is there."""
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
