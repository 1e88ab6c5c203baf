"""Channels: which NICs of its servers a collective uses, as in NCCL.

A server of g GPUs has g NICs, one for each GPU, and in a rail fabric the i-th NICs of all servers
share a leaf (rail i). A ring enters each server once and leaves it once. It therefore uses one
or two NICs of a server, however many there are. So NCCL builds several rings, its channels, and
gives each of them a share of the buffer.

How NCCL searches (src/graph/search.cc, connect.cc). The search starts at a NIC, goes from GPU to
GPU along links that have bandwidth left until it has visited all GPUs of the server, and ends at a
NIC. It subtracts the bandwidth of this path from the links and searches the next channel in the
rest, so that each channel starts at another NIC. If a channel enters and leaves a server by
different NICs, neighbouring servers would be on different rails. Therefore every second server
reverses the order (alternating rings, NCCL 2.20), and a server leaves by the rail on which the
next one enters:

    channel 0                    enters by    GPUs in order    leaves by        2 servers of
      server 0                   NIC 1        1  2  3  0       NIC 0 ─┐         4 GPUs
      server 1                ┌─ NIC 0        0  2  3  1       NIC 1 ─│┐
                              └───────────────── rail 0 ──────────────┘│  and back on rail 1
    channel 1                    the same, one rail further: 2 ... 1, then 1 ... 2

The rail between servers s and s + 1 is c + (s mod 2) in channel c. In a ring of an odd number of
servers the last rail would be the first one again, so it is c + 2. No channel changes rails
between servers, unless there are fewer than three NICs. With as many channels as NICs
every NIC sends and receives the same share. NCCL can also leave a server by
the NIC through which the ring enters; then the last GPU passes its bytes to the GPU of that NIC
(PXN). Here a GPU and its NIC are one host. The rails carry the same bytes in both cases.

In the tree of channel c, GPU c of each server communicates with other servers, and the other GPUs
of the server form a chain behind it. Within a single server there is nothing to choose.

Each rank that belongs to no server counts as a server with one GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from traffic.collectives.schedule import NOBODY
from traffic.graph import Column

Servers = tuple[tuple[int, ...], ...]
"""For each server, the ranks of its GPUs. A rank is a position in the job, from 0 on."""

MOST = 64
"""The most channels of a collective (NCCL's MAXCHANNELS)."""


def in_a_row(ranks: int, gpus: int) -> Servers:
    """Consecutive groups of `gpus` ranks are servers; the last one may have fewer."""
    return tuple(
        tuple(range(first, min(first + gpus, ranks))) for first in range(0, ranks, max(gpus, 1))
    )


def by_number(server_of: Sequence[int]) -> Servers:
    """Ranks with the same number are a server. Servers are in the order of their first ranks."""
    servers: dict[int, list[int]] = {}
    for rank, number in enumerate(server_of):
        servers.setdefault(number, []).append(rank)
    return tuple(map(tuple, servers.values()))


def are_alike(servers: Servers) -> bool:
    """Whether all servers have the same number of GPUs."""
    return len({len(server) for server in servers}) == 1


def nics_of(servers: Servers) -> int:
    """The number of NICs of a server that lead to other servers. So many channels use all NICs."""
    return min(MOST, max(map(len, servers))) if len(servers) > 1 else 1


def ring_of(servers: Servers, channel: int) -> Column:
    """The ranks in the order of a channel's ring."""
    last = len(servers) - 1
    rails = [channel + number % 2 for number in range(len(servers))]
    if last and last % 2 == 0:
        rails[last] = channel + 2
    ring: list[int] = []
    for number, server in enumerate(servers):
        ring += _through(server, enters=rails[number - 1], leaves=rails[number])
    return np.array(ring)


def _through(server: Sequence[int], enters: int, leaves: int) -> list[int]:
    """All GPUs of a server, from the GPU of one rail to the GPU of another."""
    gpus = len(server)
    out = leaves % gpus
    first = enters % gpus if enters % gpus != out else (out + 1) % gpus
    between = [(first + step) % gpus for step in range(1, gpus)]
    order = [first, *(place for place in between if place != out), out][-gpus:]
    return [server[place] for place in order]


def parents_of(servers: Servers, channel: int, between: Column) -> Column:
    """The parent of each rank in a channel's tree; NOBODY for the root.

    `between`: the parent of each server in the tree of servers.
    """
    parents = np.full(sum(map(len, servers)), NOBODY)
    chains = [np.roll(server, -(channel % len(server))) for server in servers]
    for chain, above in zip(chains, between.tolist(), strict=True):
        parents[chain[0]] = NOBODY if above == NOBODY else chains[above][0]
        for parent, child in pairwise(chain):
            parents[child] = parent
    return parents
