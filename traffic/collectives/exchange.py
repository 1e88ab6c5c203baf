"""All-to-all: every rank has a piece for every other, and sends it there.

Nobody waits for anybody: n - 1 messages of S/n bytes for each rank. What a rank has for
itself stays where it is. Everybody posts for its next neighbour first, then for the one after
it, and so on, as MPICH's scattered exchange and NCCL's schedule of sends do. Queue pairs of a NIC
take turns in this order, a packet each, so that at any time all ranks send over the same
distance, and nobody gets two packets at once:

    rank 0    1 2 3  1 2 3  ...      whom its packets go to, of 4 ranks
    rank 1    2 3 0  2 3 0  ...
    rank 2    3 0 1  3 0 1  ...
    rank 3    0 1 2  0 1 2  ...

In the order of ranks, the last one would get its first packet when all others had had theirs,
and be over about n packets later than that takes.

Behind what is sent there is room for what comes in, in order of the senders.
"""

from __future__ import annotations

import numpy as np

from traffic.collectives.ring import Pieces
from traffic.collectives.schedule import Schedule, Waits
from traffic.graph import Column


def all_to_all(
    schedule: Schedule,
    ranks: Column,
    pieces: Pieces,
    room: Pieces,
    after: Waits = (),
    channel: int = 0,
) -> Waits:
    """The s-th of `pieces` goes to rank s. `room`: where there is room at each receiver for
    the first sender's, and how far it is from there to the next sender's."""
    at, sizes = pieces
    first, each = room
    place = np.arange(len(ranks))
    got: list[Column] = []
    for distance in range(1, len(ranks)):
        to = (place + distance) % len(ranks)
        sent = schedule.send(
            ranks,
            ranks[to],
            sizes[to],
            take=at[to],
            put=first[to] + place * each[to],
            after=after,
            channel=channel,
        )
        got.append(np.roll(sent, distance))
    return [*after, *got]
