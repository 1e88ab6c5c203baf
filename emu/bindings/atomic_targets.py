"""What some operations need at their target host, besides memory for their bytes.

- A flow of atomics has a word there, which is 0 at first. Operation i changes it from i to i + 1,
  by adding 1 or by swapping. If each operation has fetched its own number, each was executed once
  and in order.
- Each SEND with invalidate invalidates a key of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emu._core import ffi, lib
from emu.bindings.nics import FarNic, OwnNic
from traffic.graph import Flow, OperationGraph
from traffic.verb import Verb

_WORDS_VA = 0x3000_0000_0000
_WORD_BYTES = 8
_WORD_ACCESS = lib.ACCESS_LOCAL_WRITE | lib.ACCESS_REMOTE_ATOMIC


NicOf = Callable[[Flow, str], OwnNic | FarNic]
"""The NIC of a flow at a host."""


class AtomicTargets:
    """The words and keys of a workload."""

    def __init__(self, graph: OperationGraph) -> None:
        self._atomics = [flow for flow in graph.flows if flow.verb.is_atomic]
        self._invalidating = [flow for flow in graph.flows if flow.verb is Verb.SEND_INV]
        self._place: dict[str, int] = {}
        count: Counter[str] = Counter()
        for flow in self._atomics:
            self._place[flow.name] = count[flow.dst]
            count[flow.dst] += 1
        self._words = {host: np.zeros(words, np.uint64) for host, words in count.items()}
        self._alive: list[Any] = []  # what C keeps pointers to

    def regions(self, host: str) -> int:
        """How many memory regions the host's NIC must have room for."""
        to_host = (flow for flow in self._invalidating if flow.dst == host)
        return (host in self._words) + sum(len(flow.operations) for flow in to_host)

    def fill(self, table: NDArray[np.void], nic_of: NicOf, *, elided: bool) -> None:
        """Registers all words and keys, and writes them into the table of operations."""
        ends = {nic_of(flow, flow.dst): flow.dst for flow in self._atomics}
        keys = {nic: self._register(nic, host, elided) for nic, host in ends.items()}
        for flow in self._atomics:
            rows, number = _rows(table, flow), np.arange(len(flow.operations))
            rows["rkey"] = keys[nic_of(flow, flow.dst)]
            rows["remote_va"] = _WORDS_VA + _WORD_BYTES * self._place[flow.name]
            rows["compare"] = number
            rows["swap_add"] = 1 if flow.verb is Verb.FETCH_ADD else number + 1
        for flow in self._invalidating:
            rows = _rows(table, flow)
            nic = nic_of(flow, flow.dst)
            rows["immediate"] = [nic.add_region(0, 0, 0, ffi.NULL) for _ in rows]

    def words(self, host: str) -> list[NDArray[np.uint64]]:
        """The words of a host, if it has any."""
        return [self._words[host]] if host in self._words else []

    def counted(self, flow: Flow, fetched: NDArray[np.uint64]) -> bool:
        """Whether each operation of the flow was executed once, given the values it fetched."""
        count = len(flow.operations)
        final = self._words[flow.dst][self._place[flow.name]]
        return int(final) == count and np.array_equal(fetched, np.arange(count, dtype=np.uint64))

    def _register(self, nic: OwnNic | FarNic, host: str, elided: bool) -> int:
        words = self._words[host]
        bytes_ = ffi.NULL if elided else ffi.from_buffer("uint8_t[]", words)
        self._alive.append(bytes_)
        return nic.add_region(_WORDS_VA, words.nbytes, _WORD_ACCESS, bytes_)


def _rows(table: NDArray[np.void], flow: Flow) -> NDArray[np.void]:
    return table[flow.operations.start : flow.operations.stop]
