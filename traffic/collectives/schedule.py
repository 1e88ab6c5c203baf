"""A schedule: a collective step by step, for all ranks at once.

    ids = schedule.send(rank, right, size, take=at, add=at, after=[before])

Every argument is an array with an entry for each rank that sends in this step, or one number for
all of them. Arrays of several groups of ranks, which do the same side by side, have a row for each
group. `send` returns the numbers of the messages in the same shape. Later steps wait for them:
`after` is a list of such arrays, with NOBODY where there is nothing to wait for.

The finished schedule becomes a graph: messages sorted by flow, and one flow for each pair of
ranks and channel. A rank's flows are in the order in which the schedule first uses them, because
messages that may leave at the same time are posted in this order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from traffic.graph import NOWHERE, Asks, Column, Flow, OperationGraph
from traffic.job import Job, Step
from traffic.patterns import flow_names
from traffic.verb import Verb

NOBODY = -1

SLOTS = 8
"""The most chunks that a rank may be ahead of the next one (NCCL_STEPS)."""

Waits = Sequence[Column]
"""Numbers of operations; each array has an entry for each rank that waits."""


class Request(NamedTuple):
    """What an application waits for, from the start of one operation to the end of another."""

    begins: int
    ends: int
    asks: Asks
    carries_bytes: int


class Schedule:
    """Messages and computation of ranks. Ranks are numbers here.

    Without `buffers`, every message has a place of its own at both ends, whatever its offsets are.
    """

    def __init__(self, *, buffers: bool = True) -> None:
        self._buffers = buffers
        self._rows: list[Column] = []
        self._edges: list[Column] = []
        self._count = 0

    def send(
        self,
        src: Column | int,
        dst: Column | int,
        size_bytes: Column | int,
        *,
        take: Column | int = NOWHERE,
        put: Column | int = NOWHERE,
        add: Column | int = NOWHERE,
        after: Waits = (),
        channel: Column | int = 0,
    ) -> Column:
        """Adds a message from each of `src` to its `dst`. Returns their numbers."""
        where = [take, put, add] if self._buffers else [NOWHERE] * 3
        return self._add([src, dst, channel, size_bytes, *where, 0, 0], after)

    def work(
        self,
        rank: Column | int,
        lasts_ns: Column | int,
        after: Waits = (),
        not_before_ns: Column | int = 0,
    ) -> Column:
        """Adds computation of each `rank`, not earlier than a time after the schedule's start.
        Returns the numbers of the operations."""
        nowhere = (NOWHERE, NOWHERE, NOWHERE)
        return self._add([rank, rank, 0, 0, *nowhere, not_before_ns, lasts_ns], after)

    def wait(self, later: Column, earlier: Column) -> None:
        """Makes each message wait for one more operation, which may have been added later."""
        pairs = np.empty((2, later.size), np.int64)
        pairs[0] = np.broadcast_to(earlier, later.shape).ravel()
        pairs[1] = later.ravel()
        somebody = pairs[0] != NOBODY
        self._edges.append(pairs if somebody.all() else pairs[:, somebody])

    def _add(self, columns: list[Column | int], after: Waits) -> Column:
        shape = np.broadcast(*columns).shape or (1,)
        rows = np.empty((len(columns), *shape), np.int64)
        for row, values in zip(rows, columns, strict=True):
            row[...] = values
        count = math.prod(shape)
        ids = np.arange(self._count, self._count + count).reshape(shape)
        self._count += count
        self._rows.append(rows.reshape(len(columns), count))
        for earlier in after:
            self.wait(ids, earlier)
        return ids

    def work_alone_ns(self) -> int:
        """How long the schedule would take if messages took no time, in nanoseconds. Every
        operation must have been added after all that it waits for."""
        lasts = np.concatenate([rows[-1] for rows in self._rows])
        over = lasts.copy()
        for earlier, later in self._edges:
            over[later] = np.maximum(over[later], over[earlier] + lasts[later])
        return int(over.max())

    def graph(
        self,
        name: str,
        ranks: Sequence[str],
        *,
        start_ns: int = 0,
        priority: int | None = None,
        jobs: tuple[Job, ...] = (),
        steps: tuple[Step, ...] = (),
        requests: Sequence[Request] = (),
    ) -> OperationGraph:
        """The graph of the schedule between the hosts `ranks`, as the traffic entry `name`."""
        rows = np.concatenate([np.empty((9, 0), np.int64), *self._rows], axis=1)
        src, dst, channel = rows[:3]
        keys = (channel * len(ranks) + src) * len(ranks) + dst
        order = _by_flow(keys, keys // len(ranks))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        edges = np.concatenate([np.empty((2, 0), np.int64), *self._edges], axis=1)
        earlier, later = place[edges]
        by_later = np.argsort(later, kind="stable")
        _, size, taken, put, added, not_before, lasts = rows[2:, order]
        begins, ends, asks, carries = np.array(requests, np.int64).reshape(-1, 4).T
        return OperationGraph(
            flows=_flows(name, ranks, keys[order], priority),
            size_bytes=size,
            not_before_ns=start_ns + not_before,
            earlier=earlier[by_later],
            later=later[by_later],
            lasts_ns=lasts,
            src_offset=taken,
            dst_offset=put,
            reduce_offset=added,
            begins=place[begins],
            ends=place[ends],
            asks=asks,
            carries=carries,
            jobs=jobs,
            steps=steps,
        )


def in_groups(groups: Column, collective: Callable[[Waits], Waits], waits: Waits) -> Waits:
    """Adds a collective in all groups of ranks, side by side (one row for each group); the groups
    cover all ranks. Returns what all ranks wait for then. `collective` gets and returns what the
    ranks of the groups wait for, in the shape of `groups`."""
    done = collective([wait[groups] for wait in waits])
    together = np.empty((len(done), groups.size), np.int64)
    together[:, groups] = np.reshape(done, (-1, *groups.shape))
    return list(together)


def _by_flow(flow: Column, sender: Column) -> Column:
    """The messages in the order of senders, then flows, then their order in the schedule.

    Flows are in the order of their first messages. In the order of receivers, all ranks of an
    all-to-all would begin with the same receiver.
    """
    _, first, place = np.unique(flow, return_index=True, return_inverse=True)
    order: Column = np.lexsort((first[place], sender))
    return order


def _flows(name: str, ranks: Sequence[str], keys: Column, priority: int | None) -> tuple[Flow, ...]:
    """One flow for each run of equal keys. A message from a rank to itself is computation."""
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    found, ends = keys[starts], [*starts[1:].tolist(), len(keys)]
    channels, pairs = np.divmod(found, len(ranks) ** 2)
    named = [(ranks[pair // len(ranks)], ranks[pair % len(ranks)]) for pair in pairs.tolist()]
    labels = [
        flow_name + (f"#{channel + 1}" if channel else "")
        for flow_name, channel in zip(flow_names(name, named), channels.tolist(), strict=True)
    ]
    return tuple(
        Flow(
            name=label,
            traffic=name,
            src=src,
            dst=dst,
            verb=Verb.COMPUTE if src == dst else Verb.WRITE,
            operations=range(start, end),
            priority=priority,
        )
        for label, (src, dst), start, end in zip(labels, named, starts.tolist(), ends, strict=True)
    )
