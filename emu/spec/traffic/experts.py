"""A layer of experts, each at one of the ranks; see traffic/collectives/moe.py."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, Strict

from emu.spec import references
from emu.spec.notes import note
from emu.spec.quantities import Integer, Size, Time
from emu.spec.traffic.job import JobEntry
from emu.units import PS_PER_NS, format_time_ns
from traffic.collectives.moe import draw_tokens, layer
from traffic.collectives.schedule import Schedule
from traffic.graph import LONGEST_WORK_NS, OperationGraph
from traffic.job import Step


class Experts(JobEntry):
    """A layer of experts: tokens are sent to experts, processed, and sent back."""

    pattern: Literal["moe"] = Field(description="Pattern of the traffic.")
    experts: Integer | None = Field(
        default=None,
        ge=1,
        le=65_536,
        description="Number of experts; one for each rank unless given.",
        json_schema_extra=note(unit="experts"),
    )
    tokens: Integer = Field(
        ge=1,
        le=10_000_000,
        description="Tokens that each rank has.",
        json_schema_extra=note(unit="tokens"),
    )
    top_k: Integer = Field(
        default=1,
        ge=1,
        le=64,
        description="Different experts that each token is sent to.",
        json_schema_extra=note(
            unit="experts",
            why="the number in a switch transformer",
            source=references.SWITCH_TRANSFORMER,
        ),
    )
    token_bytes: Size = Field(
        alias="token", gt=0, le=2**31, description="Bytes of a token, e.g. 8KiB."
    )
    token_time_ps: Time = Field(
        default=0,
        alias="token_time",
        description="Time that an expert computes on a token, e.g. 50ns.",
        json_schema_extra=note(why="0: computation takes no time, and you see the network alone"),
    )
    skew: Annotated[float, Strict(False)] = Field(
        default=0.0,
        ge=0,
        le=4,
        description="How unevenly experts are chosen: the i-th most popular one in proportion to "
        "1/i^skew. 0: all alike.",
        json_schema_extra=note(unit="a power", why="experts that are chosen alike"),
    )

    def why_hosts_do_not_fit(self) -> str | None:
        """The longest possible work is that of an expert to which every token is sent."""
        choices = len(self.among) * self.tokens * self.top_k
        longest_ns = choices * self.token_time_ps / PS_PER_NS
        if longest_ns <= LONGEST_WORK_NS:
            return None
        return (
            f"all tokens together are work of {format_time_ns(longest_ns)}, and an expert may have "
            f"{format_time_ns(LONGEST_WORK_NS)} at most; lower tokens or token_time"
        )

    @property
    def expert_count(self) -> int:
        return self.experts or len(self.among)

    @property
    def flow_count(self) -> int:
        """At most."""
        return 2 * self.message_count

    @property
    def message_count(self) -> int:
        """At most, with work."""
        ranks = len(self.among)
        return 2 * ranks * (ranks - 1) + ranks

    @property
    def total_bytes(self) -> int:
        """At most."""
        return 2 * len(self.among) * self.tokens * self.top_k * self.token_bytes

    def put_together(self, seed: int) -> OperationGraph:
        ranks, random = len(self.among), np.random.default_rng([seed, *self.name.encode()])
        tokens = draw_tokens(ranks, self.expert_count, self.tokens, self.top_k, self.skew, random)
        schedule = Schedule(buffers=False)
        layer(schedule, tokens, self.token_bytes, self.token_time_ps / PS_PER_NS)
        away = int(tokens.sum() - np.trace(tokens)) * self.token_bytes
        step = Step(self.name, schedule.work_alone_ns(), {"dispatch": away, "combine": away})
        return schedule.graph(
            self.name, self.among, start_ns=self.start_ns, priority=self.priority, steps=(step,)
        )
