"""The registered memory of the hosts, and the addresses of each message in it.

Every host has three regions. Messages are read from the source, each from another place, so that no
two carry the same bytes. Each received message has a place of its own in the sink. Messages of a
job are read from its buffer and go to a buffer, or first to the sink if they are added to a buffer:

    source    random bytes: as long as the longest message, and some more to shift it
    sink      | message | message | message |      in order of operations
    buffers   | a job's | another job's |          float32 values

In the sink, datagrams have 40 bytes for a GRH before them.

If payloads are elided, the regions have addresses and lengths but no memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emu.errors import HostError
from emu.resources import free_memory_bytes
from emu.units import format_size
from traffic.graph import NOWHERE, Column, OperationGraph
from traffic.job import FLOAT_BYTES, Floats, Job, first_values, results

SOURCE_VA = 0x1000_0000_0000
SINK_VA = 0x2000_0000_0000
BUFFERS_VA = 0x4000_0000_0000

_SHIFT = 64
"""The distance in bytes between the places in the source of successive operations."""
_SHIFTS = 1024
"""The number of different places in the source."""

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Layout:
    """Addresses of every operation's message, and lengths of every host's regions."""

    source_va: Column
    sink_va: Column
    sum_va: Column
    """The values that the message is added to; 0: none."""
    source_bytes: dict[str, int]
    sink_bytes: dict[str, int]
    buffers_bytes: dict[str, int]
    buffer_at: dict[str, dict[str, int]]
    """Job -> host -> the offset of its buffer in the host's buffers."""

    @property
    def total_bytes(self) -> int:
        """The size of the regions of all hosts."""
        regions = (self.source_bytes, self.sink_bytes, self.buffers_bytes)
        return sum(sum(region.values()) for region in regions)


def lay_out(graph: OperationGraph, hosts: list[str], lead: Column) -> Layout:
    """Assigns addresses to all messages of the workload. `lead`: bytes before each in the sink."""
    number = {host: i for i, host in enumerate(hosts)}
    src = np.array([number[flow.bytes_from] for flow in graph.flows], np.int64)[graph.flow_of]
    dst = np.array([number[flow.bytes_to] for flow in graph.flows], np.int64)[graph.flow_of]
    longest, received = np.zeros(len(hosts), np.int64), np.zeros(len(hosts), np.int64)
    from_source, to_sink = graph.src_offset == NOWHERE, graph.dst_offset == NOWHERE
    np.maximum.at(longest, src[from_source], graph.size_bytes[from_source])
    room = np.where(to_sink, lead + graph.size_bytes, 0)
    np.add.at(received, dst, room)
    source_va = SOURCE_VA + np.arange(len(src)) % _SHIFTS * _SHIFT
    sink_va = SINK_VA + _running_totals(room, dst) + lead
    buffer_at, buffers_bytes = _lay_out_buffers(graph.jobs, hosts)
    buffer_va = [
        BUFFERS_VA + np.array([buffer_at.get(flow.traffic, {}).get(host, 0) for flow, host in ends])
        for ends in (
            [(flow, flow.bytes_from) for flow in graph.flows],
            [(flow, flow.bytes_to) for flow in graph.flows],
        )
    ]
    taken_from, put_to = (va.astype(np.int64)[graph.flow_of] for va in buffer_va)
    return Layout(
        source_va=np.where(from_source, source_va, taken_from + graph.src_offset),
        sink_va=np.where(to_sink, sink_va, put_to + graph.dst_offset),
        sum_va=np.where(graph.reduce_offset == NOWHERE, 0, put_to + graph.reduce_offset),
        source_bytes=dict(zip(hosts, (longest + _SHIFTS * _SHIFT).tolist(), strict=True)),
        sink_bytes=dict(zip(hosts, (received + 1).tolist(), strict=True)),
        buffers_bytes=buffers_bytes,
        buffer_at=buffer_at,
    )


def _lay_out_buffers(
    jobs: tuple[Job, ...], hosts: list[str]
) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """The offset of each job's buffer at each of its ranks, and the total length of each host's
    buffers."""
    ends = dict.fromkeys(hosts, 0)
    buffer_at: dict[str, dict[str, int]] = {}
    for job in jobs:
        buffer_at[job.name] = {rank: ends[rank] for rank in job.ranks}
        for rank in job.ranks:
            ends[rank] += job.buffer_bytes
    return buffer_at, ends


def _running_totals(sizes: Column, group: Column) -> Column:
    """For each size, the sum of the sizes before it in the same group."""
    order = np.argsort(group, kind="stable")
    before = np.cumsum(sizes[order]) - sizes[order]
    in_order = group[order]
    first = np.searchsorted(in_order, in_order)
    totals = np.empty_like(sizes)
    totals[order] = before - before[first]
    return totals


def _check_room(needed: int) -> None:
    """Raises HostError if memory is short. Linux allocates memory when it is first written, and
    would end the run later."""
    free = free_memory_bytes()
    if needed > free:
        raise HostError(
            f"the messages' bytes take {format_size(needed)} of memory, and {format_size(free)} "
            "are free",
            remedy="send less, or use payload: elided",
        )


class Contents:
    """The bytes in the regions of all hosts."""

    def __init__(self, graph: OperationGraph, layout: Layout, draw: np.random.Generator) -> None:
        """Raises HostError when this machine has too little memory."""
        _check_room(layout.total_bytes)
        self._layout = layout
        self.source: dict[str, Bytes] = {
            host: draw.integers(0, 256, size, np.uint8)
            for host, size in layout.source_bytes.items()
        }
        self.sink: dict[str, Bytes] = {
            host: np.zeros(size, np.uint8) for host, size in layout.sink_bytes.items()
        }
        self.buffers: dict[str, Bytes] = {
            host: np.zeros(size, np.uint8) for host, size in layout.buffers_bytes.items()
        }
        self._first = {job.name: self._fill(job, draw) for job in graph.jobs}

    def _fill(self, job: Job, draw: np.random.Generator) -> list[Floats]:
        values = first_values(job, draw)
        for rank, own in zip(job.ranks, values, strict=True):
            self.buffer(job, rank)[:] = own
        return values

    def buffer(self, job: Job, rank: str) -> Floats:
        """The present buffer of a rank of a job."""
        at = self._layout.buffer_at[job.name][rank]
        return self.buffers[rank][at : at + job.buffer_bytes].view(np.float32)

    def wrong(self, job: Job) -> int:
        """How many values in the buffers of all ranks are wrong."""
        wrong = 0
        for rank, expected in zip(job.ranks, results(job, self._first[job.name]), strict=True):
            buffer = self.buffer(job, rank)
            for result in expected:
                actual = buffer[result.at // FLOAT_BYTES :][: len(result.values)]
                wrong += int(np.count_nonzero(actual != result.values))
        return wrong

    def fetched(self, operations: range, host: str) -> NDArray[np.uint64]:
        """The words that a flow of atomics has put into the host's sink."""
        at = int(self._layout.sink_va[operations.start]) - SINK_VA
        words = self.sink[host][at : at + 8 * len(operations)]
        return np.frombuffer(words.tobytes(), np.uint64)

    def arrived(self, operation: int, size: int, src: str, dst: str) -> bool:
        """Whether every byte of the operation's message is in the receiver's memory as sent.

        True for messages from or to a job's buffer, whose bytes later messages overwrite.
        """
        source, sink = int(self._layout.source_va[operation]), int(self._layout.sink_va[operation])
        if max(source, sink) >= BUFFERS_VA:
            return True
        at, to = source - SOURCE_VA, sink - SINK_VA
        return np.array_equal(self.source[src][at : at + size], self.sink[dst][to : to + size])
