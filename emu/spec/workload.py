"""The `traffic:` section: who sends how much to whom, as patterns over hosts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from emu.spec.base import Model
from emu.spec.quantities import Hosts, Integer, Priority, Size, Time, named_like
from emu.units import PS_PER_NS
from traffic.graph import OperationGraph, Verb
from traffic.patterns import Messages, incast, pair

TrafficName = Annotated[str, named_like("[A-Za-z0-9_-]{1,32}", "up to 32 letters, digits, - and _")]


class TrafficEntry(Model):
    """One pattern of messages. `sources` is the key `from`."""

    name: TrafficName = Field(description="Name in reports and checks; no two entries share one.")
    pattern: Literal["incast", "pair"] = Field(
        description="incast: all of `from` send to the one host in `to`. "
        "pair: the first of `from` sends to the first of `to`, the second to the second, ..."
    )
    sources: Hosts = Field(alias="from", description="Sending hosts, e.g. h2-h8 or [h1, h5].")
    to: Hosts = Field(description="Receiving host; with pair as many as in `from`.")
    op: Literal["write", "send"] = Field(default="write", description="RDMA WRITE or SEND.")
    size_bytes: Size = Field(alias="size", gt=0, le=2**31, description="Bytes of each message.")
    start_ps: Time = Field(
        default=0, alias="start", description="When the first message is posted."
    )
    count: Integer = Field(
        default=1, ge=1, le=100_000, description="Messages of each flow, one after another."
    )
    priority: Priority | None = Field(
        default=None,
        description="Priority (RoCE) or service level (InfiniBand); the NIC's own if not given.",
    )

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Sender and receiver of each flow, as far as `from` and `to` suit the pattern."""
        if self.pattern == "incast":
            return [(source, self.to[0]) for source in self.sources]
        return list(zip(self.sources, self.to, strict=False))

    def graph(self) -> OperationGraph:
        """Its operations and flows. `from` and `to` must suit the pattern (see `rules`)."""
        messages = Messages(
            verb=Verb(self.op),
            size_bytes=self.size_bytes,
            count=self.count,
            start_ns=round(self.start_ps / PS_PER_NS),
            priority=self.priority,
        )
        if self.pattern == "incast":
            return incast(self.name, self.sources, self.to[0], messages)
        return pair(self.name, self.sources, self.to, messages)
