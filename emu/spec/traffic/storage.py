"""Storage: initiators that read and write blocks of targets' drives, by NVMe over Fabrics.

traffic/storage.py describes the messages of an I/O.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emu.spec import references
from emu.spec.notes import note
from emu.spec.quantities import Fraction, Hosts, Integer, Rate, Size, Time
from emu.spec.traffic.entry import FromTo, random_of
from emu.spec.traffic.job import GraphEntry
from emu.units import PS_PER_NS
from traffic.graph import OperationGraph
from traffic.patterns import Pairs
from traffic.storage import Ios, storage


class StorageEntry(GraphEntry, FromTo):
    """Every initiator in `from` has queues to every target in `to`."""

    pattern: Literal["storage"] = Field(description="Pattern of the traffic.")
    sources: Hosts = Field(alias="from", description="Initiators, e.g. h1-h4.")
    to: Hosts = Field(description="Targets, each with a drive.")
    block_bytes: Size = Field(
        default=4096,
        alias="block",
        gt=0,
        le=2**31,
        description="Bytes of an I/O.",
        json_schema_extra=note(
            why="the block size of most file systems, and that of drives' data sheets"
        ),
    )
    count: Integer = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="I/Os of each queue; with a duration, the most I/Os.",
        json_schema_extra=note(unit="I/Os", why="one I/O shows its messages"),
    )
    duration_ps: Time | None = Field(
        default=None,
        alias="duration",
        gt=0,
        description="Time after which no I/O starts, like fio's runtime. Unless given, `count` "
        "I/Os are completed.",
    )
    depth: Integer = Field(
        default=1,
        ge=1,
        le=65_536,
        description="I/Os of a queue in flight at the same time.",
        json_schema_extra=note(unit="I/Os", why="as fio's iodepth", source=references.FIO),
    )
    queues: Integer = Field(
        default=1,
        ge=1,
        le=1024,
        description="Queues of each initiator at each target; a queue is a connection of two "
        "queue pairs.",
        json_schema_extra=note(unit="queues", why="as fio's numjobs", source=references.FIO),
    )
    reads: Fraction = Field(
        default=1.0,
        description="Share of the I/Os that are reads, drawn by the seed. The others write.",
        json_schema_extra=note(why="fio reads by default as well", source=references.FIO),
    )
    in_capsule_bytes: Size = Field(
        default=4096,
        alias="in_capsule",
        ge=0,
        le=2**20,
        description="Data up to this size go in the capsule of a write's command; the target "
        "fetches larger ones by RDMA READ.",
        json_schema_extra=note(
            why="the size that Linux's target (nvmet) offers: a page", source=references.NVMET
        ),
    )
    media_ps: Time = Field(
        default=0,
        alias="media",
        description="Latency of a drive for an I/O, e.g. 80us.",
        json_schema_extra=note(why="0: the drive adds no latency, and you see the network alone"),
    )
    media_write_ps: Time | None = Field(
        default=None,
        alias="media_write",
        description="Latency of a drive for a write, if it differs.",
    )
    media_rate_bps: Rate | None = Field(
        default=None,
        alias="media_rate",
        description="The highest rate at which all I/Os together read from a drive, e.g. 56Gbit; "
        "no limit unless given.",
    )
    media_write_rate_bps: Rate | None = Field(
        default=None,
        alias="media_write_rate",
        description="The highest rate of writes, if it differs.",
    )
    invalidate: bool = Field(
        default=False,
        description="Whether responses invalidate the initiator's key.",
        json_schema_extra=note(
            why="the simpler of the two ways that NVMe over RDMA allows", source=references.NVME
        ),
    )

    @property
    def senders(self) -> tuple[str, ...]:
        """The senders: initiators send commands, and targets send responses."""
        return tuple(dict.fromkeys((*self.sources, *self.to)))

    @property
    def ios(self) -> Ios:
        """The I/Os of each queue."""
        write_ps = self.media_ps if self.media_write_ps is None else self.media_write_ps
        write_rate_bps = self.media_write_rate_bps or self.media_rate_bps
        return Ios(
            count=self.count,
            depth=self.depth,
            block_bytes=self.block_bytes,
            read_share=self.reads,
            in_capsule_bytes=self.in_capsule_bytes,
            read_media_ns=round(self.media_ps / PS_PER_NS),
            write_media_ns=round(write_ps / PS_PER_NS),
            read_rate_bps=self.media_rate_bps,
            write_rate_bps=write_rate_bps,
            invalidates=self.invalidate,
            start_ns=self.start_ns,
            duration_ns=None if self.duration_ps is None else round(self.duration_ps / PS_PER_NS),
            priority=self.priority,
        )

    @property
    def queue_count(self) -> int:
        """The number of flows between all initiators and all targets."""
        return len(self.sources) * len(self.to) * self.queues

    @property
    def flow_count(self) -> int:
        return self.queue_count * self.ios.flows

    @property
    def message_count(self) -> int:
        """The number of operations, including the drives' work."""
        return self.queue_count * self.ios.operations

    @property
    def total_bytes(self) -> int:
        return self.queue_count * self.ios.bytes

    def pairs(self, seed: int) -> Pairs:
        """Initiators and targets."""
        return [(source, target) for source in self.sources for target in self.to]

    def put_together(self, seed: int) -> OperationGraph:
        return storage(self.name, self.pairs(seed), self.queues, self.ios, random_of(self, seed))
