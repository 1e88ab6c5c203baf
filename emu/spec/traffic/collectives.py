"""Collectives: operations that all hosts of a job compute together.

`algorithm` selects the algorithm, `chunk` and `channels` divide its messages; see
traffic/collectives.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from pydantic import Field

from emu.spec import references
from emu.spec.notes import note
from emu.spec.quantities import Integer, Size
from emu.spec.traffic.job import JobEntry
from traffic.collectives.channels import MOST, Servers, in_a_row
from traffic.collectives.collective import (
    Amount,
    Cut,
    amount_of,
    channels_for,
    collective,
)
from traffic.graph import OperationGraph
from traffic.job import FLOAT_BYTES, Job, Kind

AllReduceAlgorithm = Literal["ring", "tree", "double-tree", "halving-doubling", "hierarchical"]


class Collective(JobEntry):
    """The base of all collectives. Messages are WRITEs that wait for each other."""

    size_bytes: Size = Field(
        alias="size",
        gt=0,
        le=2**31,
        description="Bytes of a rank's buffer of float32s, counted as nccl-tests does: for "
        "all-gather the gathered buffer, for reduce-scatter the buffer before it is scattered.",
    )
    chunk_bytes: Size | None = Field(
        default=None,
        alias="chunk",
        ge=FLOAT_BYTES,
        description="The longest message. Chunks are pipelined: a rank forwards one while the "
        "next one arrives. Unless given, the algorithm determines the length of messages.",
    )
    channels: Integer | None = Field(
        default=None,
        ge=1,
        le=MOST,
        description="Sets of queue pairs, on which chunks take turns. With hosts.gpus each channel "
        "of a ring, a tree or a chain enters and leaves a server through another NIC. Unless "
        "given: one for each NIC of a server, and one where hosts stand alone.",
        json_schema_extra=note(unit="channels", source=references.NCCL),
    )

    @property
    @abstractmethod
    def job(self) -> Job:
        """The collective and its algorithm."""

    @property
    def cuts_pieces(self) -> bool:
        """Whether every rank needs a piece of the buffer."""
        return self.job.algorithm not in ("tree", "chain")

    @property
    def cut(self) -> Cut:
        channels = self.channels or channels_for(self.job, self.servers)
        return Cut(self.chunk_bytes, channels)

    @property
    def amount(self) -> Amount:
        return amount_of(self.job, self.cut, self.servers)

    @property
    def flow_count(self) -> int:
        return self.amount.flows

    @property
    def message_count(self) -> int:
        return self.amount.messages

    @property
    def total_bytes(self) -> int:
        return self.amount.bytes

    def put_together(self, seed: int) -> OperationGraph:
        return collective(
            self.job,
            cut=self.cut,
            servers=self.servers,
            start_ns=self.start_ns,
            priority=self.priority,
        )

    def _job(self, kind: Kind, algorithm: str, root: int = 0) -> Job:
        return Job(self.name, kind, algorithm, self.among, self.size_bytes, root)


class AllReduce(Collective):
    """Every rank has a buffer; all ranks get the sum of the buffers."""

    pattern: Literal["all-reduce"] = Field(description="Pattern of the traffic.")
    algorithm: AllReduceAlgorithm = Field(
        default="ring",
        description="ring: every rank sends pieces of the buffer to the next, the last to the "
        "first. tree, double-tree: up one or two binary trees and down again. halving-doubling: "
        "exchanges with ranks half as far away each time, and back. hierarchical: rings inside "
        "of servers, and between them rail by rail.",
        json_schema_extra=note(
            why="best for large buffers, and the simplest closed form", source=references.NCCL
        ),
    )
    gpus: Integer | None = Field(
        default=None,
        ge=1,
        le=64,
        description="hierarchical: consecutive ranks that form a server.",
        json_schema_extra=note(unit="ranks"),
    )

    @property
    def job(self) -> Job:
        return self._job(Kind.ALL_REDUCE, self.algorithm)

    @property
    def servers(self) -> Servers:
        if self.gpus is None:
            return super().servers
        return in_a_row(len(self.among), self.gpus)

    def why_hosts_do_not_fit(self) -> str | None:
        if (self.algorithm == "hierarchical") != (self.gpus is not None):
            return "gpus defines the servers of algorithm: hierarchical; give both, or none"
        if len(self.among) % (self.gpus or 1):
            return f"{len(self.among)} ranks are not a whole number of servers of {self.gpus} GPUs"
        return None


class ReduceScatter(Collective):
    """Every rank has a buffer; each gets its piece of the sum of all buffers, around a ring."""

    pattern: Literal["reduce-scatter"] = Field(description="Pattern of the traffic.")

    @property
    def job(self) -> Job:
        return self._job(Kind.REDUCE_SCATTER, "ring")


class AllGather(Collective):
    """Every rank has a piece of a buffer; a ring gathers all pieces at every rank."""

    pattern: Literal["all-gather"] = Field(description="Pattern of the traffic.")

    @property
    def job(self) -> Job:
        return self._job(Kind.ALL_GATHER, "ring")


class Broadcast(Collective):
    """All ranks get the buffer of one rank, along a chain."""

    pattern: Literal["broadcast"] = Field(description="Pattern of the traffic.")
    root: str | None = Field(
        default=None,
        description="The rank that has the buffer at first; the first rank unless given.",
    )

    @property
    def job(self) -> Job:
        return self._job(Kind.BROADCAST, "chain", self._root)

    @property
    def _root(self) -> int:
        return self.among.index(self.root) if self.root in self.among else 0

    def why_hosts_do_not_fit(self) -> str | None:
        if self.root is None or self.root in self.among:
            return None
        return f"root {self.root!r} is not a rank; name one of those in `among`"


class AllToAllPieces(Collective):
    """Every rank sends a different piece of its buffer to every other rank: NCCL's alltoall."""

    pattern: Literal["alltoall"] = Field(description="Pattern of the traffic.")

    @property
    def job(self) -> Job:
        return self._job(Kind.ALL_TO_ALL, "direct")
