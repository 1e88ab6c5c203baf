"""GOAL's binary form, which LogGOPSim reads and its txt2bin writes.

All numbers are little-endian. Offsets in the table of ranks count from byte 8.

    byte 0     u64    4223
         8     u32    number of ranks
        12     u8     highest cpu, u8 highest nic
        14     u64    for each rank: where it begins, and where it ends
    a rank     u32    number of operations, u32 number of those that wait for nothing
               u32    the number of each of those
               39 bytes for each operation
               u32    numbers of dependents
    operation  u32    how many others it waits for
               u8     1: send, 2: receive, 3: calc
               u32    peer, u64 bytes or nanoseconds, u32 tag, u8 cpu, u8 nic
               u32    how many wait for its end, u32 their place among the dependents
               u32    how many wait for its start, u32 their place

The text form (`goal`) has the same content, but for the labels; a peer or a tag of 2^32 - 1 is its
-1. Source: Parser.hpp and Goal.hpp of LogGOPSim (github.com/spcl/LogGOPSim);
ATLAHS (github.com/spcl/atlahs) has the same. The list of operations
that wait for nothing follows from the others, and is not used. A file that LogGOPSim has used up
with --save-mem has another number at the start, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from traffic.traces.goal import ANY, message
from traffic.traces.trace import Does, Step, Trace, TraceError

MAGIC = 4223
_USED_UP = 2342
_HEADER = Struct("<QIBB")
_COUNTED_FROM = 8
"""The byte that offsets of ranks count from."""
_COUNTS = Struct("<II")
_OPERATION = np.dtype(
    [
        ("waits", "<u4"),
        ("type", "u1"),
        ("peer", "<u4"),
        ("size", "<u8"),
        ("tag", "<u4"),
        ("cpu", "u1"),
        ("nic", "u1"),
        ("ends", "<u4"),
        ("ends_at", "<u4"),
        ("starts", "<u4"),
        ("starts_at", "<u4"),
    ]
)
_TYPES = {1: Does.SEND, 2: Does.RECV, 3: Does.CALC}
_ANY = 2**32 - 1


def is_goal_binary(data: bytes) -> bool:
    """Whether a file begins as GOAL's binary form does, used up or not."""
    return data[:8] in (MAGIC.to_bytes(8, "little"), _USED_UP.to_bytes(8, "little"))


def read_goal_binary(data: bytes, source: str) -> Trace:
    """The trace in GOAL's binary form; `source` is its name in error messages. Raises
    TraceError."""
    if len(data) < _HEADER.size:
        raise TraceError(source, "is truncated; let txt2bin write it again")
    magic, ranks, _, _ = _HEADER.unpack_from(data)
    if magic == _USED_UP:
        raise TraceError(
            source, "was used up by LogGOPSim's --save-mem; let txt2bin write it again"
        )
    steps: list[Step] = []
    for rank, (begin, end) in enumerate(_places(data, ranks, source)):
        reader = _Rank(data[begin:end], rank, ranks, len(steps), f"{source}: rank {rank}")
        steps += reader.steps()
    if not steps:
        raise TraceError(source, "has no steps; give a rank something to do")
    return Trace(ranks, tuple(steps))


def _places(data: bytes, ranks: int, source: str) -> Iterator[tuple[int, int]]:
    """The first byte of each rank, and the one after its last."""
    if _HEADER.size + 16 * ranks > len(data):
        raise TraceError(source, f"has no room for {ranks} ranks; let txt2bin write it again")
    table = np.frombuffer(data, "<u8", 2 * ranks, _HEADER.size).reshape(-1, 2)
    for rank, (begin, end) in enumerate(table.tolist()):
        if not begin <= end <= len(data) - _COUNTED_FROM:
            raise TraceError(f"{source}: rank {rank}", "is truncated; let txt2bin write it again")
        yield begin + _COUNTED_FROM, end + _COUNTED_FROM


class _Rank:
    """The operations of a rank. `first` is the number of its first one among all ranks' steps."""

    def __init__(self, data: bytes, rank: int, ranks: int, first: int, where: str) -> None:
        self._rank, self._ranks, self._first, self._where = rank, ranks, first, where
        count, independent = self._counts(data)
        at = _COUNTS.size + 4 * independent
        if at + count * _OPERATION.itemsize > len(data):
            raise self._broken("has no room for its operations")
        self._rows = np.frombuffer(data, _OPERATION, count, at)
        rest = data[at + count * _OPERATION.itemsize :]
        self._dependents = np.frombuffer(rest[: len(rest) // 4 * 4], "<u4")

    def _counts(self, data: bytes) -> tuple[int, int]:
        if len(data) < _COUNTS.size:
            raise self._broken("has no room for its counts")
        count, independent = _COUNTS.unpack_from(data)
        return count, independent

    def steps(self) -> list[Step]:
        """Its operations, each with those that it waits for."""
        steps = [self._step(number, row) for number, row in enumerate(self._rows.tolist())]
        waits = [0] * len(steps)
        for number, row in enumerate(self._rows):
            for key in ("ends", "starts"):
                for later in self._named(row, key):
                    steps[later] = _waiting(steps[later], key, self._first + number)
                    waits[later] += 1
        for number, (found, said) in enumerate(zip(waits, self._rows["waits"], strict=True)):
            if found != said:
                raise self._broken(
                    f"operation {number} waits for {said} others, and {found} name it"
                )
        return steps

    def _named(self, row: np.void, key: str) -> list[int]:
        """The operations that wait for the end, or the start, of one."""
        at, count = int(row[f"{key}_at"]), int(row[key])
        named: NDArray[np.uint32] = self._dependents[at : at + count]
        if len(named) < count or (count and named.max() >= len(self._rows)):
            raise self._broken("names an operation that is not there")
        return [int(number) for number in named]

    def _step(self, number: int, row: tuple[int, ...]) -> Step:
        _, kind, peer, size, tag, *_ = row
        where = f"{self._where}, operation {number}"
        if kind not in _TYPES:
            raise TraceError(where, f"has type {kind}; known are 1 send, 2 receive, 3 calc")
        does = _TYPES[kind]
        if does is Does.CALC:
            return Step(where, self._rank, does, lasts_ns=size)
        ends = (ANY if peer == _ANY else peer, ANY if tag == _ANY else tag)
        return message(where, does, self._rank, ends, size, self._ranks)

    def _broken(self, what: str) -> TraceError:
        return TraceError(self._where, f"{what}; let txt2bin write the file again")


def _waiting(step: Step, key: str, earlier: int) -> Step:
    if key == "ends":
        return replace(step, after=(*step.after, earlier))
    return replace(step, with_start_of=(*step.with_start_of, earlier))
