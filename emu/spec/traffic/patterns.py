"""Patterns of messages: incast, outcast, pair, ping-pong, permutation, all-to-all."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emu.spec.traffic.entry import AmongEntry, FromToEntry, MessageEntry, random_of
from traffic.graph import OperationGraph
from traffic.patterns import (
    Pairs,
    all_to_all,
    each_to_each,
    incast,
    outcast,
    pair,
    permutation,
    permuted,
)
from traffic.ping_pong import ping_pong


class Incast(FromToEntry):
    """All of `from` send to the one host in `to`."""

    pattern: Literal["incast"] = Field(description="Pattern of the traffic.")

    def pairs(self, seed: int) -> Pairs:
        return [(source, self.to[0]) for source in self.sources]

    def graph(self, seed: int) -> OperationGraph:
        return incast(self.name, self.sources, self.to[0], self.messages)


class Outcast(FromToEntry):
    """The one host in `from` sends to all in `to`."""

    pattern: Literal["outcast"] = Field(description="Pattern of the traffic.")

    @property
    def flow_count(self) -> int:
        return len(self.to)

    def pairs(self, seed: int) -> Pairs:
        return [(self.sources[0], destination) for destination in self.to]

    def graph(self, seed: int) -> OperationGraph:
        return outcast(self.name, self.sources[0], self.to, self.messages)


class Pair(FromToEntry):
    """The first of `from` sends to the first of `to`, the second to the second, and so on."""

    pattern: Literal["pair"] = Field(description="Pattern of the traffic.")

    def pairs(self, seed: int) -> Pairs:
        return list(zip(self.sources, self.to, strict=False))

    def graph(self, seed: int) -> OperationGraph:
        return pair(self.name, self.sources, self.to, self.messages)


class PingPong(FromToEntry):
    """Like pair, but a message of the same size answers each message before the next is sent."""

    pattern: Literal["ping-pong"] = Field(description="Pattern of the traffic.")

    @property
    def flow_count(self) -> int:
        return 2 * len(self.sources)

    def pairs(self, seed: int) -> Pairs:
        return list(zip(self.sources, self.to, strict=False))

    def ends(self, seed: int) -> dict[str, tuple[str, str]]:
        forth = super().ends(seed)
        back = {f"{name}.back": (dst, src) for name, (src, dst) in forth.items()}
        return {**forth, **back}

    def graph(self, seed: int) -> OperationGraph:
        return ping_pong(self.name, self.pairs(seed), self.messages)


class Permutation(AmongEntry, MessageEntry):
    """Every host sends to one other and receives from one other, drawn by the spec's seed."""

    pattern: Literal["permutation"] = Field(description="Pattern of the traffic.")

    def pairs(self, seed: int) -> Pairs:
        return permuted(self.among, random_of(self, seed))

    def graph(self, seed: int) -> OperationGraph:
        return permutation(self.name, self.among, self.messages, random_of(self, seed))


class AllToAll(AmongEntry, MessageEntry):
    """Every host sends to every other, all at the same time."""

    pattern: Literal["all-to-all"] = Field(description="Pattern of the traffic.")

    @property
    def flow_count(self) -> int:
        return len(self.among) * (len(self.among) - 1)

    def pairs(self, seed: int) -> Pairs:
        return each_to_each(self.among)

    def graph(self, seed: int) -> OperationGraph:
        return all_to_all(self.name, self.among, self.messages)
