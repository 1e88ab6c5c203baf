"""Shortest paths between switches, for all switches at once.

Hosts never forward, and a switch treats all hosts on another switch alike. So a route is a pair
of a switch and a leaf (a switch with hosts), and a large fabric has far fewer of these than pairs
of a switch and a host. A switch uses few different lists of ports: a fat tree's core switch has
one for each pod. Each list is kept once, and the table of a switch is an array with the number of a
list for each leaf:

    lists     (), (eth1, eth2), (eth3,)
    of_leaf   1  1  0  2                  leaves 1 and 2 over both uplinks; leaf 3 cannot be reached

Distances come from a breadth-first search from all leaves at the same time, one bit for each leaf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from topologies.graph import Port

UNREACHABLE = np.iinfo(np.uint16).max
"""The distance between switches without a path."""


@dataclass(frozen=True, eq=False)
class NextHops:
    """The next hops of one switch."""

    lists: tuple[tuple[Port, ...], ...]
    """Different lists of ports, each with the lowest number first. The first is empty."""
    of_leaf: NDArray[np.uint16]
    """For each leaf, the number of its list; 0 for the switch itself and for unreachable leaves."""


class ShortestPaths:
    """The next hops of all switches towards all leaves. Each switch's are computed once."""

    def __init__(
        self, cabled: Mapping[str, Sequence[tuple[Port, str]]], leaves: Sequence[str]
    ) -> None:
        """`cabled`: for each switch its ports to other switches, by number, each with the switch at
        its far end."""
        self._cabled = cabled
        self._number = {switch: number for number, switch in enumerate(cabled)}
        self._distance = self._distances(leaves)
        self._known: dict[str, NextHops] = {}

    def of(self, switch: str) -> NextHops:
        """Raises KeyError for an unknown switch."""
        if switch not in self._known:
            self._known[switch] = self._next_hops(switch)
        return self._known[switch]

    def _next_hops(self, switch: str) -> NextHops:
        cabled = self._cabled[switch]
        far = [self._number[name] for _, name in cabled]
        is_nearer = self._distance[far] < self._distance[self._number[switch]]
        ways = np.packbits(is_nearer, axis=0).T
        none = np.zeros((1, ways.shape[1]), np.uint8)  # sorts first
        kinds, of_leaf = _distinct_rows(np.concatenate([none, ways]))
        used = np.unpackbits(kinds, axis=1, count=len(cabled)).astype(bool)
        lists = tuple(
            tuple([cabled[place][0] for place in np.flatnonzero(row).tolist()]) for row in used
        )
        return NextHops(lists, of_leaf[1:].astype(np.uint16))

    def _distances(self, leaves: Sequence[str]) -> NDArray[np.uint16]:
        """(switches, leaves): the number of cables between them."""
        rows, columns = len(self._cabled), len(leaves)
        starts = np.zeros((rows, columns), bool)
        starts[[self._number[leaf] for leaf in leaves], np.arange(columns)] = True
        distance = np.where(starts, 0, UNREACHABLE).astype(np.uint16)
        joined = [switch for switch, cabled in self._cabled.items() if cabled]
        if not joined:
            return distance
        near = np.array([self._number[switch] for switch in joined])
        far = np.array([self._number[end] for name in joined for _, end in self._cabled[name]])
        first = np.cumsum([0, *(len(self._cabled[name]) for name in joined[:-1])])
        reached = np.packbits(starts, axis=1)
        newest, steps = reached.copy(), 0
        while newest.any():
            steps += 1
            found = np.zeros_like(reached)
            found[near] = np.bitwise_or.reduceat(newest[far], first, axis=0)
            newest = found & ~reached
            reached |= newest
            distance[np.unpackbits(newest, axis=1, count=columns).astype(bool)] = steps
        return distance


def _distinct_rows(rows: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The different rows in ascending order, and the number of each row's own among them."""
    if not rows.shape[1]:
        return rows[:1], np.zeros(len(rows), np.int64)
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], which
