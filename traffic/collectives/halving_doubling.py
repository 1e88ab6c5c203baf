"""All-reduce by recursive halving and doubling (Rabenseifner; Thakur et al., IJHPCA'05).

For a power of two. First each rank exchanges half of the buffer with the rank at distance n/2,
adds what it receives, and continues with its half; then a quarter with the rank at distance n/4,
and so on, until each rank has the sum of one piece. Then the steps are repeated backwards, with
sums:

    rank     0       1       2       3            4 pieces a to d; step 0: halves with 2 away
           ab⇄cd   ab⇄cd   cd⇄ab   cd⇄ab          0 and 1 keep ab, 2 and 3 keep cd
            a⇄b     b⇄a     c⇄d     d⇄c           0 keeps a, 1 b, 2 c, 3 d
            a⇄b     b⇄a     c⇄d     d⇄c           now sums, and doubling
           ab⇄cd   ab⇄cd   cd⇄ab   cd⇄ab

2·log2(n) steps; each rank sends 2(n - 1)/n of the buffer. With other numbers of ranks, the ranks
beyond the largest power of two first send their whole buffer to a neighbour and receive the sum
from it at the end: two more steps, and twice the buffer more.
"""

from __future__ import annotations

import numpy as np

from traffic.collectives.schedule import NOBODY, Schedule, Waits
from traffic.graph import Column
from traffic.job import pieces_of


def all_reduce(
    schedule: Schedule, ranks: Column, at: int, size_bytes: int, after: Waits = (), channel: int = 0
) -> Waits:
    """Gives every rank the sum of a part of the buffer."""
    power = 1 << (len(ranks).bit_length() - 1)
    even = 2 * np.arange(len(ranks) - power)
    odd = even + 1
    takes_part = np.delete(np.arange(len(ranks)), odd)
    waits = [np.broadcast_to(wait, ranks.shape) for wait in after]

    def hand_over(src: Column, dst: Column, waits: Waits, **where: int) -> Column:
        """Sends the whole part from some positions to their neighbours."""
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
        # Halving sends the half that the partner continues with, doubling the half summed so far.
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
