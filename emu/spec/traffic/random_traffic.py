"""Patterns whose messages are drawn by the spec's seed: a hot spot, and background load."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emu.spec.notes import note
from emu.spec.quantities import Fraction, Hosts, Integer, Rate
from emu.spec.traffic.entry import MessageEntry, Op, random_of
from emu.spec.traffic.job import JobEntry
from traffic.distributions import distribution
from traffic.graph import OperationGraph
from traffic.random_traffic import background, hot_spot
from traffic.verb import Verb


class HotSpot(JobEntry, MessageEntry):
    """Every host sends a share of its messages to one hot host, the rest to random other hosts."""

    pattern: Literal["hot-spot"] = Field(description="Pattern of the traffic.")
    hot: Hosts = Field(description="The hot host, one of `among`, e.g. h1 or leaf1[0].")
    share: Fraction = Field(
        default=0.2,
        description="Share of every host's messages that goes to the hot host.",
        json_schema_extra=note(
            why="one message in five: enough to overload one port of eight hosts or more"
        ),
    )

    @property
    def senders(self) -> tuple[str, ...]:
        return tuple(host for host in self.among if host != self.hot[0])

    @property
    def hosts(self) -> dict[str, tuple[str, ...]]:
        return {"among": self.among, "hot": self.hot}

    @property
    def flow_count(self) -> int:
        """An upper bound: a host may leave some of the others out."""
        return len(self.senders) * (len(self.among) - 1)

    @property
    def message_count(self) -> int:
        return len(self.senders) * self.count

    def put_together(self, seed: int) -> OperationGraph:
        """Empty if the hosts could only send to the hot one; `rules` reports that."""
        if len(self.senders) < 2:
            return OperationGraph()
        random = random_of(self, seed)
        return hot_spot(self.name, self.among, self.hot[0], self.share, self.messages, random)


class Background(JobEntry):
    """Every host sends messages of measured sizes to random hosts at random times (open loop)."""

    pattern: Literal["background"] = Field(description="Pattern of the traffic.")
    op: Op = "write"
    sizes: Literal["websearch", "hadoop", "storage"] = Field(
        description="Distribution of the messages' sizes, as measured in data centres: a web "
        "search service, a Hadoop cluster, a distributed storage system."
    )
    rate_bps: Rate = Field(
        alias="rate",
        description="Average offered load of each host, in bits of message per second: 30Gbit is "
        "a load of 30% on 100Gbit.",
    )
    count: Integer = Field(
        default=100,
        ge=1,
        le=100_000,
        description="Messages of each host.",
        json_schema_extra=note(
            unit="messages", why="enough for a median; percentiles of tails need thousands"
        ),
    )
    connections: Integer = Field(
        default=1,
        ge=1,
        le=100_000,
        description="Queue pairs between each pair of hosts; messages take turns on them. With as "
        "many queue pairs as messages, no message waits behind another of its pair, as in papers "
        "that compare completion times.",
        json_schema_extra=note(
            unit="queue pairs",
            why="most RDMA programs use one queue pair for each pair of hosts",
        ),
    )

    @property
    def flow_count(self) -> int:
        """An upper bound: a host may leave some of the others out, or send less."""
        return len(self.among) * min((len(self.among) - 1) * self.connections, self.count)

    @property
    def message_count(self) -> int:
        return len(self.among) * self.count

    @property
    def total_bytes(self) -> int:
        """The expected number of bytes; the sum of the drawn sizes differs."""
        return round(self.message_count * distribution(self.sizes).mean_bytes)

    def put_together(self, seed: int) -> OperationGraph:
        return background(
            self.name,
            self.among,
            distribution(self.sizes),
            rate_bps=self.rate_bps,
            count=self.count,
            verb=Verb(self.op),
            start_ns=self.start_ns,
            priority=self.priority,
            random=random_of(self, seed),
            connections=self.connections,
        )
