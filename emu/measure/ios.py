"""I/Os as fio prints them: how many a second, how many bytes, how long they took; reads and writes.

reads    3 I/Os  ├──┤    ├──┤    ├──┤          IOPS = I/Os / run time
writes   2 I/Os      ├──┤    ├──┤              bandwidth = IOPS · block
                 ├── run time ────┤            of the whole entry, its first start to last end
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from emu.measure.requests import UNFINISHED, Column, Latency, Requests, latency_of
from traffic.graph import Asks

NS_PER_S = 1_000_000_000
_WAYS = (Asks.READ, Asks.WRITE)


@dataclass(frozen=True)
class IoFigures:
    """Of all reads, or all writes, of one traffic entry."""

    way: str
    """`read` or `write`."""
    iops: int | None
    """None if no I/O of the entry was over, as there is no run time then."""
    bandwidth_bps: int | None
    """Bits of blocks per second, 8 times what fio calls BW; None as above."""
    latency: Latency
    """From the command to the response."""


def io_figures(requests: Requests) -> tuple[IoFigures, ...]:
    """Of each entry that reads or writes; of finished I/Os, which the latency counts beside."""
    return tuple(
        figures
        for place in np.unique(requests.of[np.isin(requests.asks, _WAYS)]).tolist()
        for figures in _of_entry(requests, requests.traffic[place], requests.of == place)
    )


def _of_entry(requests: Requests, name: str, own: Column) -> Iterator[IoFigures]:
    run_ns = _run_time_ns(requests.start_ns[own], requests.end_ns[own])
    for asks in _WAYS:
        rows = own & (requests.asks == asks)
        if rows.any():
            start_ns, end_ns = requests.start_ns[rows], requests.end_ns[rows]
            over = end_ns != UNFINISHED
            moved = int(requests.carries[rows][over].sum())
            yield IoFigures(
                way=asks.name.lower(),
                iops=_per_second(int(over.sum()), run_ns),
                bandwidth_bps=_per_second(moved * 8, run_ns),
                latency=latency_of(name, start_ns, end_ns),
            )


def _per_second(count: int, run_ns: int | None) -> int | None:
    return None if run_ns is None else round(count * NS_PER_S / run_ns)


def _run_time_ns(start_ns: Column, end_ns: Column) -> int | None:
    """None: nothing was over."""
    over = end_ns != UNFINISHED
    return max(1, int(end_ns[over].max() - start_ns[over].min())) if over.any() else None
