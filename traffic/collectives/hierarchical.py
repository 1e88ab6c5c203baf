"""All-reduce in two tiers: inside of servers, and between them rail by rail.

    server 1    h1 ═ h2 ═ h3 ═ h4      ═ scale-up: a reduce-scatter inside, so that
                │    │    │    │         GPU i has the server's sum of piece i
    server 2    h5 ═ h6 ═ h7 ═ h8      │ scale-out: a ring all-reduce of piece i over the
                rail 1, 2, 3, 4          i-th GPUs of all servers; then an all-gather inside

Of g GPUs in each of N servers: (g - 1) + 2(N - 1) + (g - 1) steps; each NIC carries
2(N - 1)/N of a piece, S/g, rather than of all: a g-th of what a flat ring sends.
"""

from __future__ import annotations

import numpy as np

from traffic.collectives import ring
from traffic.collectives.schedule import Schedule, Waits, in_groups
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
    gpus: int,
) -> Waits:
    """Everybody ends up with the sum; each `gpus` ranks in a row are a server."""
    servers = np.arange(len(ranks)).reshape(-1, gpus)
    at_piece, sizes = pieces = pieces_of(at, size_bytes, gpus)

    def scattered(server: int, waits: Waits) -> Waits:
        return ring.reduce_scatter(schedule, ranks[servers[server]], pieces, waits, channel)

    def summed(rail: int, waits: Waits) -> Waits:
        part = int(at_piece[rail]), int(sizes[rail])
        return ring.all_reduce(schedule, ranks[servers[:, rail]], *part, waits, channel)

    def gathered(server: int, waits: Waits) -> Waits:
        return ring.all_gather(schedule, ranks[servers[server]], pieces, waits, channel)

    waits: Waits = [np.broadcast_to(wait, ranks.shape) for wait in after]
    for groups, collective in ((servers, scattered), (servers.T, summed), (servers, gathered)):
        waits = in_groups(groups, collective, waits)
    return waits
