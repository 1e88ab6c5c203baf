"""Around the ring: reduce-scatter, all-gather, and both as all-reduce (Patarasuk, Yuan, JPDC'09).

The buffer is cut into one piece for each rank. In every step each rank sends to its right
neighbour the piece that it received in the step before. In a reduce-scatter it first adds its own
part.

            step 0    step 1    step 2    step 3         4 pieces a to d, steps 0 to 5
    rank 0    d         c         b         a ...
    rank 1    a         d         c         b ...        reduce-scatter: r sends r - 1 - s
    rank 2    b         a         d         c ...        all-gather:     r sends r - s
    rank 3    c         b         a         d ...        modulo the number of ranks
            └── reduce-scatter ──┘└─ all-gather ─┘

Several rings of equal length may go around side by side: `ranks` has a row for each, and what they
wait for has the same shape.

After n - 1 steps rank r has the sum of piece r (reduce-scatter). After n - 1 more steps every rank
has all sums (all-gather). A rank sends 2(n - 1) pieces, which is 2(n - 1)/n of the buffer. Step s
of a rank starts when step s - 1 of its left neighbour has been delivered.
"""

from __future__ import annotations

import numpy as np

from traffic.collectives.schedule import Schedule, Waits
from traffic.graph import Column
from traffic.job import pieces_of

Pieces = tuple[Column, Column]
"""The offsets and sizes of the pieces, one for each rank; rings with pieces of their own have a row
for each ring."""


def reduce_scatter(
    schedule: Schedule, ranks: Column, pieces: Pieces, after: Waits = (), channel: int = 0
) -> Waits:
    """Gives the r-th rank the sum of the r-th piece. Returns what each rank waits for then."""
    return _around(schedule, ranks, pieces, 1, True, after, channel)


def all_gather(
    schedule: Schedule, ranks: Column, pieces: Pieces, after: Waits = (), channel: int = 0
) -> Waits:
    """The r-th rank has the r-th piece at first; at the end every rank has all pieces."""
    return _around(schedule, ranks, pieces, 0, False, after, channel)


def all_reduce(
    schedule: Schedule,
    ranks: Column,
    at: int,
    size_bytes: int,
    after: Waits = (),
    channel: int = 0,
) -> Waits:
    """Gives every rank the sum of a part of the buffer."""
    pieces = pieces_of(at, size_bytes, ranks.shape[-1])
    return all_reduce_pieces(schedule, ranks, pieces, after, channel)


def all_reduce_pieces(
    schedule: Schedule, ranks: Column, pieces: Pieces, after: Waits = (), channel: int = 0
) -> Waits:
    """Gives every rank the sum of all pieces."""
    reduced = reduce_scatter(schedule, ranks, pieces, after, channel)
    return all_gather(schedule, ranks, pieces, reduced, channel)


def _around(
    schedule: Schedule,
    ranks: Column,
    pieces: Pieces,
    first: int,
    adds: bool,
    after: Waits,
    channel: int,
) -> Waits:
    """n - 1 steps. The first sends the piece `first` positions before the rank's own."""
    at, sizes = pieces
    count = ranks.shape[-1]
    place, right = np.arange(count), np.roll(ranks, -1, axis=-1)
    ready = after if adds else ()  # each step adds a part of the rank's own buffer
    waits: Waits = after
    got: Waits = ()
    for step in range(count - 1):
        piece = (place - first - step) % count
        offset = at[..., piece]
        where = {"add" if adds else "put": offset}
        sent = schedule.send(
            ranks, right, sizes[..., piece], take=offset, after=waits, channel=channel, **where
        )
        got = (np.roll(sent, 1, axis=-1),)
        waits = [*ready, *got]
    return [*after, *got]
