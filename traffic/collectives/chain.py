"""Broadcast along a chain: the root sends to the next rank, which sends to the next, and so on.

    root ─▶ root + 1 ─▶ root + 2 ─▶ ...           n - 1 steps, the buffer once for each rank

With the buffer cut into k chunks, the chain is a pipeline. Over d hops of rate B, chunks of c
bytes take (k + d - 1)·c/B, hardly longer than one transfer of the buffer.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from traffic.collectives.schedule import NOBODY, Schedule, Waits
from traffic.graph import Column


def broadcast(
    schedule: Schedule,
    ranks: Column,
    at: int,
    size_bytes: int,
    after: Waits = (),
    channel: int = 0,
    *,
    root: int = 0,
) -> Waits:
    """Gives every rank a part of the root's buffer."""
    order = np.roll(np.arange(len(ranks)), -root)
    got = np.full(len(ranks), NOBODY)
    for place, following in pairwise(order):
        waits = [np.broadcast_to(wait, ranks.shape) for wait in after]
        got[following] = schedule.send(
            ranks[place],
            ranks[following],
            size_bytes,
            take=at,
            put=at,
            after=[wait[[place]] for wait in [*waits, got]],
            channel=channel,
        )[0]
    return [*after, got]
