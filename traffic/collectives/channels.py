"""Channels: through which NICs of its servers a collective goes, as NCCL would have it.

A server of g GPUs has g NICs, one for each GPU, and in a rail fabric the i-th NICs of all servers
share a leaf (rail i). A ring enters a server once and leaves it once, so one ring uses one
or two NICs of each server, however many there are. NCCL therefore builds several rings, its
channels, and gives each of them a share of the buffer.

How NCCL searches (src/graph/search.cc, connect.cc). It starts at a NIC, goes from GPU to GPU along
links that still have bandwidth left, until it has met all GPUs of the server, and ends at a NIC.
What the path uses is taken from the links, and the next channel is searched in what is left: so
each channel starts at another NIC. If a channel enters and leaves by different NICs, two servers
would meet on different rails; therefore every second server goes the other way round
(alternating rings, NCCL 2.20). Then it leaves by the NIC through which the next one enters:

    channel 0                    enters by    GPUs in order    leaves by        2 servers of
      server 0                   NIC 1        1  2  3  0       NIC 0 ─┐         4 GPUs
      server 1                ┌─ NIC 0        0  2  3  1       NIC 1 ─│┐
                              └───────────────── rail 0 ──────────────┘│  and back on rail 1
    channel 1                    the same, one rail further: 2 ... 1, then 1 ... 2

The rail between servers s and s + 1 is c + (s mod 2) in channel c. In a ring of an odd number of
servers the last rail would be the first one again, so it is c + 2: no channel ever changes rails
on its way between servers, unless there are fewer than three NICs. With as many channels as NICs
every NIC sends and receives the same share. NCCL can also leave by the NIC that a ring came in by;
then the last GPU hands its bytes to that NIC's GPU (PXN). A GPU and its NIC are one host here, and
the rails carry the same bytes either way.

A tree of a channel has one GPU of each server, number c, that talks to other servers; behind it
its server's GPUs form a chain. Inside of one server there is nothing to choose.

Ranks without servers around them are servers of one GPU each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from traffic.collectives.schedule import NOBODY
from traffic.graph import Column

Servers = tuple[tuple[int, ...], ...]
"""Of each server, the ranks that are its GPUs. A rank is its place in the job, from 0 on."""

MOST = 64
"""Channels of a collective, at most (NCCL's MAXCHANNELS)."""


def in_a_row(ranks: int, gpus: int) -> Servers:
    """Each `gpus` ranks in a row are a server; the last one may have fewer."""
    return tuple(
        tuple(range(first, min(first + gpus, ranks))) for first in range(0, ranks, max(gpus, 1))
    )


def by_number(server_of: Sequence[int]) -> Servers:
    """Ranks with the same number are a server; servers are in the order of their first ranks."""
    servers: dict[int, list[int]] = {}
    for rank, number in enumerate(server_of):
        servers.setdefault(number, []).append(rank)
    return tuple(map(tuple, servers.values()))


def are_alike(servers: Servers) -> bool:
    """Whether all of them have the same number of GPUs."""
    return len({len(server) for server in servers}) == 1


def nics_of(servers: Servers) -> int:
    """NICs of a server that lead to others; one channel through each of them uses all."""
    return min(MOST, max(map(len, servers))) if len(servers) > 1 else 1


def ring_of(servers: Servers, channel: int) -> Column:
    """The ranks in the order in which a channel's ring visits them."""
    last = len(servers) - 1
    rails = [channel + number % 2 for number in range(len(servers))]
    if last and last % 2 == 0:
        rails[last] = channel + 2
    ring: list[int] = []
    for number, server in enumerate(servers):
        ring += _through(server, enters=rails[number - 1], leaves=rails[number])
    return np.array(ring)


def _through(server: Sequence[int], enters: int, leaves: int) -> list[int]:
    """All its GPUs, from the one of a rail to that of another."""
    gpus = len(server)
    out = leaves % gpus
    first = enters % gpus if enters % gpus != out else (out + 1) % gpus
    between = [(first + step) % gpus for step in range(1, gpus)]
    order = [first, *(place for place in between if place != out), out][-gpus:]
    return [server[place] for place in order]


def parents_of(servers: Servers, channel: int, between: Column) -> Column:
    """For each rank its parent in a channel's tree; NOBODY for the root.

    `between`: for each server its parent in the tree of servers.
    """
    parents = np.full(sum(map(len, servers)), NOBODY)
    chains = [np.roll(server, -(channel % len(server))) for server in servers]
    for chain, above in zip(chains, between.tolist(), strict=True):
        parents[chain[0]] = NOBODY if above == NOBODY else chains[above][0]
        for parent, child in pairwise(chain):
            parents[child] = parent
    return parents
