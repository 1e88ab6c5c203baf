"""All-reduce by recursive halving and doubling (Rabenseifner; Thakur et al., IJHPCA'05).

For a power of two. First everybody exchanges half of what it still cares for with a rank
that is n/2 away, adds, and cares for the other half from then on; then a quarter with one
n/4 away, and so on, until each has the sum of one piece. Then the same backwards, with
sums:

    rank     0       1       2       3            4 pieces a to d; step 0: halves with 2 away
           ab⇄cd   ab⇄cd   cd⇄ab   cd⇄ab          0 and 1 keep ab, 2 and 3 keep cd
            a⇄b     b⇄a     c⇄d     d⇄c           0 keeps a, 1 b, 2 c, 3 d
            a⇄b     b⇄a     c⇄d     d⇄c           now sums, and doubling
           ab⇄cd   ab⇄cd   cd⇄ab   cd⇄ab

2·log2(n) steps, 2(n - 1)/n of the buffer for each rank. Of other numbers of ranks those
beyond the largest power of two hand all they have to a neighbour first, and get the sum
from it in the end: two more steps, and the buffer twice more.
"""

from __future__ import annotations

import numpy as np

from traffic.collectives.schedule import NOBODY, Schedule, Waits
from traffic.graph import Column
from traffic.job import pieces_of


def all_reduce(
    schedule: Schedule, ranks: Column, at: int, size_bytes: int, after: Waits = (), channel: int = 0
) -> Waits:
    """Everybody ends up with the sum of a part of the buffer."""
    power = 1 << (len(ranks).bit_length() - 1)
    even = 2 * np.arange(len(ranks) - power)
    odd = even + 1
    takes_part = np.delete(np.arange(len(ranks)), odd)
    waits = [np.broadcast_to(wait, ranks.shape) for wait in after]

    def hand_over(src: Column, dst: Column, waits: Waits, **where: int) -> Column:
        """The whole part, from some places to their neighbours; what each place gets."""
        got = np.full(len(ranks), NOBODY)
        got[dst] = schedule.send(
            ranks[src],
            ranks[dst],
            size_bytes,
            take=at,
            after=[wait[src] for wait in waits],
            channel=channel,
            **where,
        )
        return got

    waits = [*waits, hand_over(odd, even, waits, add=at)]
    done = np.full((len(waits) + 2 * (power.bit_length() - 1), len(ranks)), NOBODY)
    done[:, takes_part] = _power_of_two(
        schedule, ranks[takes_part], at, size_bytes, [wait[takes_part] for wait in waits], channel
    )
    return [*done, hand_over(even, odd, list(done), put=at)]


def _power_of_two(
    schedule: Schedule, ranks: Column, at: int, size_bytes: int, after: Waits, channel: int
) -> Waits:
    place = np.arange(len(ranks))
    starts, sizes = pieces_of(at, size_bytes, len(ranks))
    ends = starts + sizes
    distances = [len(ranks) >> step for step in range(1, len(ranks).bit_length())]
    got: list[Column] = []
    for distance, adds in [(d, True) for d in distances] + [(d, False) for d in distances[::-1]]:
        partner = place ^ distance
        # Halving sends what the partner goes on with, doubling what we have got together.
        block = (partner if adds else place) // distance * distance
        first, last = starts[block], ends[block + distance - 1]
        where = {"add" if adds else "put": first}
        sent = schedule.send(
            ranks,
            ranks[partner],
            last - first,
            take=first,
            after=[*after, *got],
            channel=channel,
            **where,
        )
        got = [*got, sent[partner]]
    return [*after, *got]
