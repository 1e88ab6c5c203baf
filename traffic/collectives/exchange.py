"""All-to-all: every rank has a piece for every other, and sends it there.

No rank waits for another: each sends n - 1 messages of S/n bytes. Its own piece stays in place.
Each rank posts the message to its next neighbour first, then to the one after it, and so on, as
MPICH's scattered exchange and NCCL's send schedule do. The queue pairs of a NIC take turns in this
order, one packet each. So at any time all ranks send over the same distance, and no rank receives
two packets at once:

    rank 0    1 2 3  1 2 3  ...      receivers of its packets, with 4 ranks
    rank 1    2 3 0  2 3 0  ...
    rank 2    3 0 1  3 0 1  ...
    rank 3    0 1 2  0 1 2  ...

In the order of ranks, the last rank would get its first packet after all others, and would finish
about n packet times later.

Received pieces are placed behind the sent ones, in the order of the senders.
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
    """Sends the s-th of `pieces` to rank s, in each row of `ranks`. `room`: the offset at each
    receiver for the first sender's piece, and the distance to the next sender's."""
    at, sizes = pieces
    first, each = room
    count = ranks.shape[-1]
    place = np.arange(count)
    got: list[Column] = []
    for distance in range(1, count):
        to = (place + distance) % count
        sent = schedule.send(
            ranks,
            ranks[..., to],
            sizes[to],
            take=at[to],
            put=first[to] + place * each[to],
            after=after,
            channel=channel,
        )
        got.append(np.roll(sent, distance, axis=-1))
    return [*after, *got]
