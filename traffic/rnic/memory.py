"""The hosts' registered memory, and where in it each message comes from and goes to.

Every host has two regions. Its messages are read from the source, each from
another place, so that no two carry the same bytes; what it receives has a place
of its own in the sink:

    source    random bytes: the longest message it sends, and some more to shift it in
    sink      | message | message | message |      in order of operations

Datagrams have 40 bytes for a GRH before them in the sink.

Where payloads are elided both are addresses alone, of the same lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from traffic.graph import Column, OperationGraph

SOURCE_VA = 0x1000_0000_0000
SINK_VA = 0x2000_0000_0000

_SHIFT = 64
"""Bytes between the places from which one operation and the next are read."""
_SHIFTS = 1024
"""So many different places."""

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Layout:
    """Offsets of every operation's message, and lengths of every host's regions."""

    source_at: Column
    sink_at: Column
    source_bytes: dict[str, int]
    sink_bytes: dict[str, int]


def lay_out(graph: OperationGraph, hosts: list[str], lead: Column) -> Layout:
    """Gives every message of the workload its places, with `lead` bytes before it in the sink."""
    number = {host: i for i, host in enumerate(hosts)}
    src = np.array([number[flow.bytes_from] for flow in graph.flows], np.int64)[graph.flow_of]
    dst = np.array([number[flow.bytes_to] for flow in graph.flows], np.int64)[graph.flow_of]
    longest, received = np.zeros(len(hosts), np.int64), np.zeros(len(hosts), np.int64)
    np.maximum.at(longest, src, graph.size_bytes)
    room = lead + graph.size_bytes
    np.add.at(received, dst, room)
    return Layout(
        source_at=np.arange(len(src)) % _SHIFTS * _SHIFT,
        sink_at=_running_totals(room, dst) + lead,
        source_bytes=dict(zip(hosts, (longest + _SHIFTS * _SHIFT).tolist(), strict=True)),
        sink_bytes=dict(zip(hosts, (received + 1).tolist(), strict=True)),
    )


def _running_totals(sizes: Column, group: Column) -> Column:
    """For each size the sum of those before it in the same group."""
    order = np.argsort(group, kind="stable")
    before = np.cumsum(sizes[order]) - sizes[order]
    in_order = group[order]
    first = np.searchsorted(in_order, in_order)
    totals = np.empty_like(sizes)
    totals[order] = before - before[first]
    return totals


class Contents:
    """The bytes in every host's regions."""

    def __init__(self, layout: Layout, random: Random) -> None:
        self._layout = layout
        self.source: dict[str, Bytes] = {
            host: np.frombuffer(random.randbytes(size), np.uint8).copy()
            for host, size in layout.source_bytes.items()
        }
        self.sink: dict[str, Bytes] = {
            host: np.zeros(size, np.uint8) for host, size in layout.sink_bytes.items()
        }

    def fetched(self, operations: range, host: str) -> NDArray[np.uint64]:
        """The words that a flow of atomics has put into the host's sink."""
        at = self._layout.sink_at[operations.start]
        words = self.sink[host][at : at + 8 * len(operations)]
        return np.frombuffer(words.tobytes(), np.uint64)

    def arrived(self, operation: int, size: int, src: str, dst: str) -> bool:
        """Whether every byte of the operation's message is in the receiver's memory as sent."""
        at, to = self._layout.source_at[operation], self._layout.sink_at[operation]
        return np.array_equal(self.source[src][at : at + size], self.sink[dst][to : to + size])
