"""Storage over a fabric: NVMe over Fabrics by RDMA, as a graph of operations.

An initiator (h1) reads and writes blocks of a drive behind a target (h5). A queue is a connection
of one pair of queue pairs. These are the messages of an I/O:

    read                        write                       write, in its capsule
    h1 ─── SEND command ──▶ h5  h1 ─── SEND command ──▶ h5  h1 ─ SEND command, data ─▶ h5
                    media          ◀── READ the data ──                     media
       ◀── WRITE the data ─                     media          ◀── SEND response ────
       ◀── SEND response ──        ◀── SEND response ──

A command has 64 bytes and a response 16 (NVM Express Base Specification, submission and completion
queue entries). The data of a write are in its command's capsule if they are no longer than the
target allows (Linux' nvmet: 4 KiB by default, drivers/nvme/target/rdma.c). A response may
invalidate the initiator's key (SEND with invalidate). It is posted directly after the data, without
waiting for their acknowledgement, because the queue pair keeps the order.

A queue of depth d has d I/Os in flight. They form d chains, and in each chain an I/O starts when
the response to the previous one has arrived. With a duration, no I/O starts after its end. So a
queue may complete fewer I/Os than its count, as with fio's runtime.

A drive serves several I/Os at the same time, each for its media latency, but transfers one block
after another: all queues together read no faster than the drive's read rate, and write no faster
than its write rate. So a drive does, for reads and for writes,

    I/Os per second = min(rate of the link / bytes of an I/O on the link,
                          rate of the drive / block, I/Os in flight / time of one I/O alone)

Left out: everything before the first I/O (discovery, connect), the contents of capsules (their
bytes are random like all others), and that reads and writes wait for each other inside a drive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

import numpy as np
from numpy.typing import NDArray

from emu.units import PS_PER_S
from traffic.graph import Asks, Column, Flow, OperationGraph, together
from traffic.patterns import Pairs, flow_names
from traffic.verb import Verb

COMMAND_BYTES, RESPONSE_BYTES = 64, 16


@dataclass(frozen=True)
class Ios:
    """The I/Os of every queue."""

    count: int
    depth: int
    block_bytes: int
    read_share: float
    """The share of I/Os that read, 0 to 1; a random choice decides which."""
    in_capsule_bytes: int
    """The largest data of a write that a command's capsule carries."""
    read_media_ns: int = 0
    write_media_ns: int = 0
    """The time that the drive takes for one I/O."""
    read_rate_bps: int | None = None
    write_rate_bps: int | None = None
    """The rates of all I/Os of the drive together; None: no limit."""
    invalidates: bool = False
    """Whether responses invalidate the initiator's key."""
    start_ns: int = 0
    duration_ns: int | None = None
    """The time from the start in which I/Os start. None: no limit."""
    priority: int | None = None

    @property
    def reads(self) -> int:
        return round(self.read_share * self.count)

    @property
    def writes(self) -> int:
        return self.count - self.reads

    @property
    def fetched(self) -> int:
        """Writes whose data the target reads from the initiator's memory."""
        return self.writes if self.block_bytes > self.in_capsule_bytes else 0

    @property
    def flows(self) -> int:
        """The flows of a queue that have operations."""
        return 2 + 2 * (self.reads > 0) + (self.writes > 0) + (self.fetched > 0)

    @property
    def operations(self) -> int:
        """The operations of a queue."""
        return 3 * self.count + self.reads + self.fetched

    @property
    def bytes(self) -> int:
        """The bytes of all messages of a queue."""
        return self.count * (COMMAND_BYTES + RESPONSE_BYTES + self.block_bytes)


def storage(name: str, pairs: Pairs, queues: int, ios: Ios, random: Random) -> OperationGraph:
    """Each pair is an initiator and a target, with `queues` queues between them."""
    return together(
        _queue(name, label + (f"#{queue}" if queue > 1 else ""), *pair, ios, random)
        for label, pair in zip(flow_names(name, pairs), pairs, strict=True)
        for queue in range(1, queues + 1)
    )


def _queue(
    name: str, label: str, initiator: str, target: str, ios: Ios, random: Random
) -> OperationGraph:
    reads = _drawn(ios, random)
    fetched = ~reads & (ios.block_bytes > ios.in_capsule_bytes)
    answer = Verb.SEND_INV if ios.invalidates else Verb.SEND
    to_target, at_target, to_initiator = (initiator, target), (target, target), (target, initiator)
    parts = [
        _Part("commands", *to_target, Verb.SEND, _capsules(reads | fetched, ios)),
        _Part("read-media", *at_target, Verb.COMPUTE, np.zeros(ios.reads, np.int64)),
        _Part("write-media", *at_target, Verb.COMPUTE, np.zeros(ios.writes, np.int64)),
        _Part("reads", *to_initiator, Verb.WRITE, np.full(reads.sum(), ios.block_bytes)),
        _Part("writes", *to_initiator, Verb.READ, np.full(fetched.sum(), ios.block_bytes)),
        _Part("responses", *to_initiator, answer, np.full(ios.count, RESPONSE_BYTES)),
    ]
    first = np.cumsum([0, *(len(part.size_bytes) for part in parts)])
    command, reading, writing, data, fetch, response = map(np.arange, first[:-1], first[1:])
    media = np.empty(ios.count, np.int64)
    media[reads], media[~reads] = reading, writing
    waits = [
        (command[~fetched], media[~fetched]),
        (command[fetched], fetch),
        (fetch, media[fetched]),
        (reading, data),
        (media, response),
        (response[: -ios.depth], command[ios.depth :]),
    ]
    earlier, later = np.concatenate(waits, axis=1)
    in_order = np.argsort(later, kind="stable")
    lasts_ns, busy_ps = np.zeros((2, first[-1]), np.int64)
    lasts_ns[reading], lasts_ns[writing] = ios.read_media_ns, ios.write_media_ns
    busy_ps[reading] = _busy_ps(ios.block_bytes, ios.read_rate_bps)
    busy_ps[writing] = _busy_ps(ios.block_bytes, ios.write_rate_bps)
    not_after_ns = np.zeros(first[-1], np.int64)
    if ios.duration_ns is not None:
        not_after_ns[command] = ios.start_ns + ios.duration_ns
    return OperationGraph(
        flows=_flows(name, label, parts, ios.priority),
        size_bytes=np.concatenate([part.size_bytes for part in parts]),
        not_before_ns=np.full(first[-1], ios.start_ns),
        not_after_ns=not_after_ns,
        lasts_ns=lasts_ns,
        busy_ps=busy_ps,
        earlier=earlier[in_order],
        later=later[in_order],
        begins=command,
        ends=response,
        asks=np.where(reads, Asks.READ, Asks.WRITE),
        carries=np.full(ios.count, ios.block_bytes),
    )


@dataclass(frozen=True)
class _Part:
    """The operations of one kind of all I/Os of a queue."""

    what: str
    src: str
    dst: str
    verb: Verb
    size_bytes: Column


def _busy_ps(block_bytes: int, rate_bps: int | None) -> int:
    """The time in which a drive transfers one block."""
    return round(8 * block_bytes * PS_PER_S / rate_bps) if rate_bps else 0


def _drawn(ios: Ios, random: Random) -> NDArray[np.bool_]:
    """Whether each I/O reads."""
    reads = [True] * ios.reads + [False] * (ios.count - ios.reads)
    random.shuffle(reads)
    return np.array(reads, bool)


def _capsules(bare: NDArray[np.bool_], ios: Ios) -> Column:
    """The sizes of the commands with the data in their capsules."""
    return COMMAND_BYTES + np.where(bare, 0, ios.block_bytes)


def _flows(name: str, label: str, parts: Sequence[_Part], priority: int | None) -> tuple[Flow, ...]:
    """The flows of the parts that have operations."""
    ends = accumulate(len(part.size_bytes) for part in parts)
    return tuple(
        Flow(
            name=f"{label}.{part.what}",
            traffic=name,
            src=part.src,
            dst=part.dst,
            verb=part.verb,
            operations=range(end - len(part.size_bytes), end),
            priority=priority,
            shares=label,
            device=f"{part.src} {part.what}" if part.verb is Verb.COMPUTE else None,
        )
        for part, end in zip(parts, ends, strict=True)
        if len(part.size_bytes)
    )
