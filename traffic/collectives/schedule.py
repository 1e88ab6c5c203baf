"""A schedule: a collective step by step, for all ranks at once.

    ids = schedule.send(rank, right, size, take=at, add=at, after=[before])

Every argument is an array with an entry for each rank that sends in this step, or one number for
all of them. `send` returns the numbers of the messages, for which later steps wait: `after` is a
list of such arrays, with NOBODY where there is nothing to wait for.

The finished schedule becomes a graph: messages sorted by flow, and one flow for each pair of
ranks and channel. A rank's flows are in the order in which the schedule first uses them, because
messages that may leave at the same time are posted in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from traffic.graph import NOWHERE, Column, Flow, OperationGraph, Verb
from traffic.job import Job, Step
from traffic.patterns import flow_names

NOBODY = -1

SLOTS = 8
"""The most chunks that a rank may be ahead of the next one (NCCL_STEPS)."""

Waits = Sequence[Column]
"""Numbers of operations; each array has an entry for each rank that waits."""


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
        return self._add([src, dst, channel, size_bytes, *where, 0], after)

    def work(self, rank: Column | int, lasts_ns: Column | int, after: Waits = ()) -> Column:
        """Adds computation of each `rank`. Returns the numbers of the operations."""
        nowhere = (NOWHERE, NOWHERE, NOWHERE)
        return self._add([rank, rank, 0, 0, *nowhere, lasts_ns], after)

    def wait(self, later: Column, earlier: Column) -> None:
        """Makes each message wait for one more operation, which may have been added later."""
        pairs = np.array([earlier, later])
        self._edges.append(pairs[:, pairs[0] != NOBODY])

    def _add(self, columns: list[Column | int], after: Waits) -> Column:
        rows = np.array(np.broadcast_arrays(*map(np.atleast_1d, columns)), np.int64)
        ids = self._count + np.arange(rows.shape[1])
        self._count += len(ids)
        self._rows.append(rows)
        for earlier in after:
            pairs = np.array(np.broadcast_arrays(earlier, ids))
            self._edges.append(pairs[:, pairs[0] != NOBODY])
        return ids

    def work_alone_ns(self) -> int:
        """How long the schedule would take if messages took no time, in nanoseconds."""
        lasts = np.concatenate([rows[-1] for rows in self._rows]).tolist()
        over = list(lasts)
        earlier, later = np.concatenate(self._edges, axis=1)
        for before, after in zip(earlier.tolist(), later.tolist(), strict=True):
            over[after] = max(over[after], over[before] + lasts[after])
        return int(max(over))

    def graph(
        self,
        name: str,
        ranks: Sequence[str],
        *,
        start_ns: int = 0,
        priority: int | None = None,
        jobs: tuple[Job, ...] = (),
        steps: tuple[Step, ...] = (),
    ) -> OperationGraph:
        """The graph of the schedule between the hosts `ranks`, as the traffic entry `name`."""
        rows = np.concatenate([np.empty((8, 0), np.int64), *self._rows], axis=1)
        src, dst, channel = rows[:3]
        keys = (channel * len(ranks) + src) * len(ranks) + dst
        order = _by_flow(keys, keys // len(ranks))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        edges = np.concatenate([np.empty((2, 0), np.int64), *self._edges], axis=1)
        earlier, later = place[edges]
        by_later = np.argsort(later, kind="stable")
        _, size, taken, put, added, lasts = rows[2:, order]
        return OperationGraph(
            flows=_flows(name, ranks, keys[order], priority),
            size_bytes=size,
            not_before_ns=np.full(len(order), start_ns),
            earlier=earlier[by_later],
            later=later[by_later],
            lasts_ns=lasts,
            src_offset=taken,
            dst_offset=put,
            reduce_offset=added,
            jobs=jobs,
            steps=steps,
        )


def in_groups(groups: Column, collective: Callable[[int, Waits], Waits], waits: Waits) -> Waits:
    """Adds a collective in each group of ranks (one row for each); the groups cover all ranks.
    Returns what all ranks wait for then. `collective` gets the number of a group, and what its
    ranks wait for."""
    done = [
        collective(number, [wait[group] for wait in waits]) for number, group in enumerate(groups)
    ]
    together = np.empty((len(done[0]), groups.size), np.int64)
    for group, own in zip(groups, done, strict=True):
        together[:, group] = np.reshape(own, (-1, len(group)))
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
