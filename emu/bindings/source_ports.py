"""The UDP source port of each flow of a fabric, before its queue pairs exist.

The port depends on the two queue pair numbers, which NICs assign in the order of the flows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from emu._core import lib
from traffic.flow_columns import FlowColumns
from traffic.graph import Flow

Column = NDArray[np.int64]


def source_ports(flows: Iterable[Flow]) -> dict[str, int]:
    """Flow -> the UDP source port of its data and of the packets sent back.

    `flows` are all flows of the fabric, in order.
    """
    used: Counter[str] = Counter()
    ports = {}
    for flow in flows:
        own, remote = (lib.FIRST_QPN + used[host] for host in (flow.src, flow.dst))
        used.update((flow.src, flow.dst))
        ports[flow.name] = int(lib.roce_source_port(own, remote))
    return ports


def queue_pair_numbers(flows: Iterable[Flow]) -> dict[str, dict[str, int]]:
    """Connection -> host -> the number of its queue pair there.

    `flows` are all flows of the fabric, in order.
    """
    used: Counter[str] = Counter()
    numbers: dict[str, dict[str, int]] = {}
    for flow in flows:
        if flow.connection not in numbers:
            ends = (flow.src, flow.dst)
            numbers[flow.connection] = {host: lib.FIRST_QPN + used[host] for host in ends}
            used.update(ends)
    return numbers


def queue_pair_columns(columns: FlowColumns, flows: Column) -> tuple[Column, Column]:
    """The numbers of each flow's queue pairs, at `src` and at `dst`: those of `queue_pair_numbers`,
    for many flows at once. `flows`: the numbers of all flows of the fabric, in order."""
    _, first, connection = np.unique(
        columns.connection[flows], return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    src, dst = (ends[flows[first[order]]] for ends in (columns.src, columns.dst))
    used = _earlier(np.stack([src, dst], axis=1).reshape(-1)).reshape(-1, 2)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    own = place[connection.reshape(-1)]
    swapped = columns.src[flows] != src[own]
    at_src, at_dst = used[own, 0], used[own, 1] - (src == dst)[own]
    return (
        lib.FIRST_QPN + np.where(swapped, at_dst, at_src),
        lib.FIRST_QPN + np.where(swapped, at_src, at_dst),
    )


def _earlier(values: Column) -> Column:
    """For each value, how many equal ones stand before it."""
    order = np.argsort(values, kind="stable")
    begins = np.flatnonzero(np.diff(values[order], prepend=-1))
    counts = np.diff(np.append(begins, len(values)))
    result = np.empty(len(values), np.int64)
    result[order] = np.arange(len(values)) - np.repeat(begins, counts)
    return result
