"""All-reduce in two tiers: within servers, and between them rail by rail.

    server 1    h1 ═ h2 ═ h3 ═ h4      ═ scale-up: a reduce-scatter inside, so that
                │    │    │    │         GPU i has the server's sum of piece i
    server 2    h5 ═ h6 ═ h7 ═ h8      │ scale-out: a ring all-reduce of piece i over the
                rail 1, 2, 3, 4          i-th GPUs of all servers; then an all-gather inside

With g GPUs in each of N servers it takes (g - 1) + 2(N - 1) + (g - 1) steps. Each NIC carries
2(N - 1)/N of a piece of S/g bytes: a g-th of what it carries in a flat ring.

A rank starts a chunk when the first phase of the eighth chunk before it has ended; NCCL has 8
slots for chunks, too. If it started all chunks at once, their first steps would all precede the
second step of any in its send queue, and the NICs would be idle until the first phase has ended.
"""

from __future__ import annotations

import numpy as np

from traffic.collectives import ring
from traffic.collectives.channels import Servers
from traffic.collectives.schedule import SLOTS, Schedule, Waits, in_groups
from traffic.graph import Column
from traffic.job import pieces_of


def all_reduce(
    schedule: Schedule,
    ranks: Column,
    at: int,
    size_bytes: int,
    after: Waits = (),
    channel: int = 0,
    *,
    servers: Servers,
    begun: list[Waits],
) -> Waits:
    """Gives every rank the sum. All servers must have the same number of GPUs.

    `begun`: for earlier chunks of this channel, the ends of their first phases; one is added.
    """
    inside = np.array(servers)
    pieces = pieces_of(at, size_bytes, inside.shape[1])
    parts = [pieces_of(int(own), int(size), len(inside)) for own, size in zip(*pieces, strict=True)]
    starts, sizes = np.array(parts).swapaxes(0, 1)

    def scattered(waits: Waits) -> Waits:
        return ring.reduce_scatter(schedule, ranks[inside], pieces, waits, channel)

    def summed(waits: Waits) -> Waits:
        return ring.all_reduce_pieces(schedule, ranks[inside.T], (starts, sizes), waits, channel)

    def gathered(waits: Waits) -> Waits:
        return ring.all_gather(schedule, ranks[inside], pieces, waits, channel)

    slot = begun[-SLOTS] if len(begun) >= SLOTS else ()
    waits: Waits = [*(np.broadcast_to(wait, ranks.shape) for wait in after), *slot]
    begun.append(in_groups(inside, scattered, waits))
    return in_groups(inside, gathered, in_groups(inside.T, summed, begun[-1]))
