"""Which NIC each channel of a collective uses, in the lines that NCCL logs with NCCL_DEBUG=INFO.

    h1:1:1 [0] NCCL INFO 8 coll channels
    h1:1:1 [0] NCCL INFO Channel 00/08 :    1   2   3   0   4   6   7   5      a ring, by ranks
    h1:1:1 [0] NCCL INFO Trees [0] 1/4/-1->0->-1 [1] ...         children -> rank -> parent
    h2:2:2 [1] NCCL INFO Channel 00/0 : 5[1] -> 1[1] [receive] via NET/IB/1
    h1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 4[0] [send] via NET/IB/0

A line begins with host, process and thread. The number in brackets is that of the GPU, and of its
NIC, within the server. NCCL writes NET/IB for RoCE, too. Only the first server's lines are printed;
the NICs' numbers in other servers follow the same pattern.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from traffic.collectives.channels import Servers, ring_of
from traffic.collectives.collective import AROUND
from traffic.collectives.schedule import NOBODY
from traffic.collectives.tree import trees_of

_TREES = ("tree", "double-tree")
_MOST_CHILDREN = 3
"""The places for children in NCCL's lines."""


@dataclass(frozen=True)
class Connection:
    """A channel's connection from one server to another. `src` and `dst` are ranks."""

    channel: int
    src: int
    dst: int


@dataclass(frozen=True)
class Channels:
    """The channels of one algorithm."""

    algorithm: str
    servers: Servers
    count: int

    @property
    def rings(self) -> list[list[int]]:
        """The ranks in each channel's ring, in order; empty for an algorithm without rings."""
        if self.algorithm not in AROUND:
            return []
        return [ring_of(self.servers, channel).tolist() for channel in range(self.count)]

    @property
    def trees(self) -> list[list[int]]:
        """For each channel and tree, the parent of every rank, -1 for the root; empty for an
        algorithm without trees."""
        if self.algorithm not in _TREES:
            return []
        return [
            parents.tolist()
            for channel in range(self.count)
            for parents in trees_of(self.algorithm, self.servers, channel)
        ]

    @property
    def connections(self) -> Iterator[Connection]:
        """The connections between servers, by channel."""
        server_of = {rank: server for server in self.servers for rank in server}
        for channel, ring in enumerate(self.rings):
            for src, dst in pairwise([*ring, ring[0]]):
                if server_of[src] != server_of[dst]:
                    yield Connection(channel, src, dst)
        for channel, parents in enumerate(self.trees):
            for rank, parent in enumerate(parents):
                if parent != NOBODY and server_of[rank] != server_of[parent]:
                    yield Connection(channel, rank, parent)
                    yield Connection(channel, parent, rank)


def channel_lines(channels: Channels, hosts: Sequence[str]) -> Iterator[str]:
    """The lines that the ranks of the first server log."""
    log = _Log(channels.servers, hosts)
    rings, trees = channels.rings, channels.trees
    if not rings and not trees:
        return
    first = channels.servers[0]
    yield log.line(first[0], f"{max(len(rings), len(trees))} coll channels")
    for channel, ring in enumerate(rings):
        ranks = "".join(f" {rank:3d}" for rank in ring)
        yield log.line(first[0], f"Channel {channel:02d}/{len(rings):02d} :{ranks}")
    for rank in first if trees else ():
        yield log.line(rank, "Trees " + " ".join(_branches(trees, rank)))
    for one in channels.connections:
        for rank, what in ((one.dst, "receive"), (one.src, "send")):
            if rank in first:
                way = f"{log.name(one.src)} -> {log.name(one.dst)} [{what}]"
                nic = f"via NET/IB/{log.gpu[rank]}"
                yield log.line(rank, f"Channel {one.channel:02d}/0 : {way} {nic}")


def _branches(trees: Sequence[Sequence[int]], rank: int) -> Iterator[str]:
    """The rank with its children and its parent, in each tree."""
    for number, parents in enumerate(trees):
        below = [child for child, parent in enumerate(parents) if parent == rank]
        shown = [*below, *([NOBODY] * _MOST_CHILDREN)][: max(_MOST_CHILDREN, len(below))]
        yield f"[{number}] {'/'.join(map(str, shown))}->{rank}->{parents[rank]}"


def numbers_in(servers: Servers) -> dict[int, int]:
    """Rank -> the number of its GPU, and of that GPU's NIC, within its server."""
    return {rank: gpu for server in servers for gpu, rank in enumerate(server)}


class _Log:
    """Writes log lines with the prefix and the rank names of NCCL."""

    def __init__(self, servers: Servers, hosts: Sequence[str]) -> None:
        self._hosts = hosts
        self.gpu = numbers_in(servers)

    def line(self, rank: int, text: str) -> str:
        process = rank + 1
        return f"{self._hosts[rank]}:{process}:{process} [{self.gpu[rank]}] NCCL INFO {text}"

    def name(self, rank: int) -> str:
        return f"{rank}[{self.gpu[rank]}]"
