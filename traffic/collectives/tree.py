"""All-reduce up and down a binary tree, or two of them (Sanders, Speck, Träff, ParCo'09).

Sums go up to the root, and from there back to everybody: 2·ceil(log2 n) steps, few where
messages are small. Positions 1 to n are numbered in order, so that odd ones are leaves:

              4                   parent of p, which ends in h zero bits: the h-th bit
          ╱       ╲               cleared, the next one set; while that is beyond n,
        2           6             the parent's parent
      ╱   ╲       ╱   ╲
    1       3   5       7

An inner rank receives the buffer three times (twice up, once down), a leaf once. So one
tree cannot use what leaves could send. With two trees, each for half of the buffer, the
second numbered the other way round (n even) or shifted by one (n odd), leaves of the one
are inner in the other, and everybody sends and receives the buffer twice at most.

Only chunks make a tree fast for large buffers: a level sends one while another level
sends the next. Of k chunks two trees need 2·S/B at an inner rank's link, and as long as the first
chunk takes up and down, 2·floor(log2 n) messages one after another: with 64 ranks and 60 chunks
5 % more. Nothing arranges who sends to whom when, as the article's steps of two colours would,
so that senders meet at a receiver while others wait: up to 5 % more again, and with
pauses, which hold a NIC's other queues up as well, 13 %. NCCL's own estimate of its trees is
0.92 of the links' rate (src/graph/tuning.cc).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traffic.collectives.schedule import NOBODY, Schedule, Waits
from traffic.graph import Column
from traffic.job import pieces_of


def all_reduce(
    schedule: Schedule, ranks: Column, at: int, size_bytes: int, after: Waits = (), channel: int = 0
) -> Waits:
    """Everybody ends up with the sum of a part of the buffer, by one tree."""
    tree = _Tree(schedule, ranks, parents_of(len(ranks)), at, size_bytes, channel)
    return tree.down([*after, *tree.up(after)])


def double_all_reduce(
    schedule: Schedule, ranks: Column, at: int, size_bytes: int, after: Waits = (), channel: int = 0
) -> Waits:
    """The same by two trees, each for half of it."""
    (first, second), (half, rest) = pieces_of(at, size_bytes, 2)
    order = second_tree(len(ranks))
    one = all_reduce(schedule, ranks, int(first), int(half), after, 2 * channel)
    waits = [np.broadcast_to(wait, (len(ranks),))[order] for wait in after]
    other = all_reduce(schedule, ranks[order], int(second), int(rest), waits, 2 * channel + 1)
    back = np.argsort(order)
    return [*one, *(wait[back] for wait in other)]


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
    """Places by their height, lowest first; a parent is always higher than its children."""
    positions = np.arange(1, len(parents) + 1)
    height = np.log2(positions & -positions).astype(int)
    return [np.flatnonzero(height == h) for h in range(height.max() + 1)]


@dataclass(frozen=True)
class _Tree:
    """A part of the buffer, and the tree that it goes up and down."""

    schedule: Schedule
    ranks: Column
    parents: Column
    at: int
    size_bytes: int
    channel: int

    def up(self, after: Waits) -> Waits:
        """What each place's children send it: two arrays, for the lower child and the higher."""
        from_children = np.full((2, len(self.ranks)), NOBODY)
        for level in levels_of(self.parents):
            inner = level[self.parents[level] != NOBODY]
            above = self.parents[inner]
            waits = [*(np.broadcast_to(wait, self.ranks.shape) for wait in after), *from_children]
            sent = self._send(inner, above, waits, add=self.at)
            from_children[(inner > above).astype(int), above] = sent
        return list(from_children)

    def down(self, after: Waits) -> Waits:
        """The sum, from the root down; what each place gets, and what the root waited for."""
        from_parent = np.full(len(self.ranks), NOBODY)
        waits = [np.where(self.parents == NOBODY, wait, NOBODY) for wait in after]
        for level in reversed(levels_of(self.parents)):
            children = np.flatnonzero(np.isin(self.parents, level))
            above = self.parents[children]
            from_parent[children] = self._send(above, children, [*waits, from_parent], put=self.at)
        return [*waits, from_parent]

    def _send(self, src: Column, dst: Column, waits: Waits, **where: int) -> Column:
        """From places to places, each when it has got what it waits for."""
        return self.schedule.send(
            self.ranks[src],
            self.ranks[dst],
            self.size_bytes,
            take=self.at,
            after=[wait[src] for wait in waits],
            channel=self.channel,
            **where,
        )
