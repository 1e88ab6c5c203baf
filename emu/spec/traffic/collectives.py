"""Collectives: what all hosts of a job compute together."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emu.spec.quantities import Size
from emu.spec.traffic.entry import AmongEntry
from traffic.collectives import ring_all_reduce, ring_pairs, ring_steps
from traffic.graph import OperationGraph
from traffic.patterns import Pairs


class AllReduce(AmongEntry):
    """All ranks sum up a buffer that each of them has, by WRITEs that wait for each other."""

    pattern: Literal["all-reduce"] = Field(description="Pattern of the traffic.")
    algorithm: Literal["ring"] = Field(
        default="ring",
        description="ring: every rank sends pieces of the buffer to the next, the last to the "
        "first.",
    )
    size_bytes: Size = Field(alias="size", gt=0, le=2**31, description="Bytes of the buffer.")

    @property
    def message_count(self) -> int:
        return len(self.among) * ring_steps(len(self.among))

    @property
    def total_bytes(self) -> int:
        return self.size_bytes * ring_steps(len(self.among))

    def pairs(self, seed: int) -> Pairs:
        return ring_pairs(self.among)

    def graph(self, seed: int) -> OperationGraph:
        return ring_all_reduce(
            self.name,
            self.among,
            self.size_bytes,
            start_ns=self.start_ns,
            priority=self.priority,
        )
