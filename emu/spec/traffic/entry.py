"""The base of all entries of the `traffic:` section.

`pattern` determines the keys of an entry: `from` and `to` if hosts have different roles, `among` if
all have the same. Hosts are named one by one, or by their place in the fabric (see `groups`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random
from typing import Annotated, Literal, Self

from pydantic import Field

from emu.spec import references
from emu.spec.base import Model
from emu.spec.groups import expanded
from emu.spec.notes import note
from emu.spec.quantities import Hosts, Integer, Priority, Size, Time, named_like
from emu.units import PS_PER_NS
from topologies.graph import Topology
from traffic.graph import OperationGraph
from traffic.patterns import Messages, Pairs, flow_names
from traffic.verb import Verb

TrafficName = Annotated[str, named_like("[A-Za-z0-9_-]{1,32}", "up to 32 letters, digits, - and _")]

Stack = Literal["rdma", "tcp"]

_WHY_WRITE = note(
    why="collectives and storage mostly write; a WRITE does not involve the receiver's program"
)

Op = Annotated[
    Literal["write", "write-imm", "send", "send-imm", "read"],
    Field(
        description="RDMA operation of each message. write and send; -imm adds immediate data. "
        "read: the bytes go the other way, from the responder to the requester.",
        json_schema_extra=_WHY_WRITE,
    ),
]


AnyOp = Annotated[
    Literal["write", "write-imm", "send", "send-imm", "send-inv", "read", "cmp-swap", "fetch-add"],
    Field(
        description="RDMA operation of each message. write and send; -imm adds immediate data, "
        "-inv invalidates a key at the receiver. read: the bytes go the other way, from the "
        "responder to the requester. cmp-swap and fetch-add: atomics on a word of 8 bytes, which "
        "return its previous value.",
        json_schema_extra=_WHY_WRITE,
    ),
]


class TrafficEntry(Model, ABC):
    """The base of all patterns."""

    name: TrafficName = Field(description="Name in reports and checks; no two entries share one.")
    pattern: str = Field(description="Pattern of the traffic.")
    start_ps: Time = Field(
        default=0,
        alias="start",
        description="When the first message is posted.",
        json_schema_extra=note(why="with the run"),
    )
    priority: Priority | None = Field(
        default=None,
        description="Priority (RoCE) or service level (InfiniBand); that of the NIC unless given.",
        json_schema_extra=note(unit="priority or service level"),
    )

    partition: str | None = Field(
        default=None,
        description="InfiniBand: the partition whose P_Key its packets carry; the default one "
        "unless given.",
    )

    stack: Stack | None = Field(
        default=None, description="The transport that carries it; hosts.stack unless given."
    )

    @property
    def start_ns(self) -> int:
        return round(self.start_ps / PS_PER_NS)

    @property
    @abstractmethod
    def hosts(self) -> dict[str, tuple[str, ...]]:
        """Key -> the hosts that it names. The hosts of the first key are the senders."""

    @property
    def senders(self) -> tuple[str, ...]:
        return next(iter(self.hosts.values()))

    def placed(self, topology: Topology, gpus: int | None = None) -> Self:
        """The entry with the names of hosts in place of groups. `gpus`: the number of consecutive
        hosts that are a server, if any."""
        groups = {"sources", "to", "among", "hot"} & type(self).model_fields.keys()
        named = {field: expanded(getattr(self, field), topology) for field in groups}
        return self.model_copy(update=named)

    @property
    @abstractmethod
    def flow_count(self) -> int:
        """The number of flows."""

    @property
    @abstractmethod
    def message_count(self) -> int:
        """The number of messages of all flows."""

    @property
    @abstractmethod
    def total_bytes(self) -> int:
        """The bytes of all messages."""

    @abstractmethod
    def pairs(self, seed: int) -> Pairs:
        """The source and destination of each flow; empty if the hosts do not suit the pattern."""

    def ends(self, seed: int) -> dict[str, tuple[str, str]]:
        """The source and destination of each flow, by its name."""
        pairs = self.pairs(seed)
        return dict(zip(flow_names(self.name, pairs), pairs, strict=True))

    @abstractmethod
    def graph(self, seed: int) -> OperationGraph:
        """The operations and flows. The hosts must suit the pattern (see `rules`)."""


class AmongEntry(TrafficEntry):
    """A pattern in which all hosts have the same role."""

    among: Hosts = Field(
        description="The hosts, two or more, e.g. h1-h8, or all; of a collective the ranks, in "
        "order."
    )

    @property
    def hosts(self) -> dict[str, tuple[str, ...]]:
        return {"among": self.among}

    @property
    def flow_count(self) -> int:
        return len(self.among)


def random_of(entry: TrafficEntry, seed: int) -> Random:
    """The entry's own random generator, so that its numbers do not depend on other entries."""
    return Random(f"{seed} {entry.name}")


class MessageEntry(TrafficEntry):
    """A pattern whose flows all send the same messages."""

    op: AnyOp = "write"
    transport: Literal["rc", "uc", "ud"] = Field(
        default="rc",
        description="rc: reliable connections; uc: unreliable ones, on which a lost packet costs "
        "its message; ud: datagrams, messages of one packet.",
        json_schema_extra=note(
            why="most RDMA programs use reliable connections", source=references.IBTA
        ),
    )
    size_bytes: Size = Field(
        alias="size", gt=0, le=2**31, description="Bytes of each message; of an atomic 8."
    )
    count: Integer = Field(
        default=1,
        ge=1,
        le=100_000,
        description="Messages of each flow, one after another.",
        json_schema_extra=note(unit="messages", why="one message shows the effect of the fabric"),
    )
    outstanding: Integer = Field(
        default=1,
        ge=1,
        le=100_000,
        description="The most messages of a flow in flight at the same time.",
        json_schema_extra=note(unit="messages", why="each message waits for the one before it"),
    )

    burst: Integer = Field(
        default=1,
        ge=1,
        le=100_000,
        description="With `every`: messages of each burst of a flow.",
        json_schema_extra=note(unit="messages", why="one message at a time"),
    )
    every_ps: Time = Field(
        default=0,
        alias="every",
        description="Time from the start of one burst of a flow to the start of the next; no "
        "bursts unless given.",
        json_schema_extra=note(why="0: no bursts"),
    )

    @property
    def message_count(self) -> int:
        return self.flow_count * self.count

    @property
    def total_bytes(self) -> int:
        return self.message_count * self.size_bytes

    @property
    def messages(self) -> Messages:
        return Messages(
            verb=Verb(self.op),
            size_bytes=self.size_bytes,
            count=self.count,
            outstanding=self.outstanding,
            start_ns=self.start_ns,
            priority=self.priority,
            burst=self.burst,
            period_ns=round(self.every_ps / PS_PER_NS),
        )


class FromTo(TrafficEntry):
    """A pattern with hosts that initiate transfers and hosts that respond."""

    sources: Hosts = Field(
        alias="from", description="Sending hosts, e.g. h2-h8, [h1, h5], or all[1:]."
    )
    to: Hosts = Field(
        description="Receiving hosts: one for an incast, as many as in `from` for pairs."
    )

    @property
    def hosts(self) -> dict[str, tuple[str, ...]]:
        return {"from": self.sources, "to": self.to}


class FromToEntry(FromTo, MessageEntry):
    """A pattern of some hosts that send and others that receive."""

    @property
    def flow_count(self) -> int:
        return len(self.sources)


def transport_of(entry: TrafficEntry) -> str:
    """A pattern without the key `transport` uses reliable connections."""
    return entry.transport if isinstance(entry, MessageEntry) else "rc"
