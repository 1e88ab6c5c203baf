"""FCT slowdown: how many times longer messages took than they would have alone.

    slowdown = completion time / completion time of that message on the idle path

A message of background load is posted at its time, whatever else is on its way, and is
complete when its last byte is in the receiver's memory. Alone, it takes what arithmetic says
(see `bound`). Large messages share with many others, small ones wait behind a few packets, so
each size is reported separately, as papers on congestion control do (HPCC, SIGCOMM'19, figure 10):
in ten buckets with as many messages each, the smallest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emu.measure.bound import Batch, Paths, fabric_of
from emu.measure.percentile import percentiles
from emu.measure.requests import UNFINISHED, UNKNOWN, Column, Requests
from emu.spec.model import Background, Spec
from topologies.graph import Topology
from traffic.graph import Flow
from traffic.verb import Verb

BUCKETS = 10

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]
"""A mask of the requests: True selects one."""


@dataclass(frozen=True)
class Bucket:
    """Messages of about one size. Mean and percentiles cover finished messages; None: no message
    finished."""

    up_to_bytes: int
    """The largest message here; those of the bucket before are smaller."""
    messages: int
    unfinished: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None

    @property
    def finished(self) -> int:
        """How many messages the mean and the percentiles cover."""
        return self.messages - self.unfinished


@dataclass(frozen=True)
class FctSlowdown:
    """Of one traffic entry."""

    traffic: str
    whole: Bucket
    """All of its messages."""
    buckets: tuple[Bucket, ...]
    """By size."""


def fct_slowdowns(requests: Requests) -> tuple[FctSlowdown, ...]:
    """The slowdown of each traffic entry with known times on an idle path."""
    return tuple(
        _of_entry(requests, requests.traffic[place])
        for place in np.unique(requests.of[requests.alone_ns != UNKNOWN]).tolist()
    )


def slowdowns(requests: Requests, traffic: str, among: Rows) -> Floats:
    """The slowdown of an entry's messages that are `among` these rows; NaN: not finished."""
    return _slowdowns(requests, _rows(requests, traffic) & among)


def _rows(requests: Requests, traffic: str) -> Rows:
    """Messages of an entry with a known time on an idle path."""
    place = requests.traffic.index(traffic) if traffic in requests.traffic else -1
    own: Rows = (requests.of == place) & (requests.alone_ns != UNKNOWN)
    return own


def _slowdowns(requests: Requests, own: Rows) -> Floats:
    over = requests.end_ns[own] != UNFINISHED
    took_ns = requests.end_ns[own] - requests.start_ns[own]
    return np.where(over, took_ns / requests.alone_ns[own], np.nan)


def _of_entry(requests: Requests, name: str) -> FctSlowdown:
    own = _rows(requests, name)
    sizes, slowdown = requests.carries[own], _slowdowns(requests, own)
    return FctSlowdown(
        traffic=name,
        whole=_bucket(sizes, slowdown),
        buckets=tuple(_bucket(sizes[rows], slowdown[rows]) for rows in _by_size(sizes)),
    )


def _by_size(sizes: Column) -> Iterator[Rows]:
    """The messages of each bucket. Messages of one size share a bucket, so there may be fewer
    buckets."""
    shares = np.arange(1, BUCKETS + 1) / BUCKETS
    edges = np.unique(np.quantile(sizes, shares, method="inverted_cdf"))
    bucket_of = np.searchsorted(edges, sizes)
    yield from (bucket_of == bucket for bucket in range(len(edges)))


def _bucket(sizes: Column, slowdown: Floats) -> Bucket:
    finished = slowdown[~np.isnan(slowdown)]
    shares = (0.5, 0.95, 0.99)
    p50, p95, p99 = percentiles(finished, shares) if len(finished) else [None] * len(shares)
    return Bucket(
        up_to_bytes=int(sizes.max()),
        messages=len(sizes),
        unfinished=len(sizes) - len(finished),
        mean=float(finished.mean()) if len(finished) else None,
        p50=p50,
        p95=p95,
        p99=p99,
    )


def alone_ns(spec: Spec, topology: Topology) -> Column:
    """For each request of the workload how long it takes on idle cables and switches.

    UNKNOWN for those that are no messages of a background load, or do not cross the fabric.
    """
    graph, paths = spec.workload(), Paths(topology, fabric_of(spec, topology))
    drawn = {entry.name for entry in spec.traffic if isinstance(entry, Background)}
    crosses = [
        flow.traffic in drawn and not spec.in_one_server(flow.src, flow.dst) for flow in graph.flows
    ]
    flow_of = graph.flow_of[graph.begins]
    own = np.flatnonzero(np.array(crosses, bool)[flow_of])
    alone = np.full(len(graph.begins), UNKNOWN)
    alone[own] = [
        _message_alone_ns(paths, graph.flows[number], size)
        for number, size in zip(flow_of[own].tolist(), graph.carries[own].tolist(), strict=True)
    ]
    return alone


def _message_alone_ns(paths: Paths, flow: Flow, size_bytes: int) -> int:
    """A READ sends its request first, a packet as long as an empty WRITE."""
    batches = [Batch(flow.bytes_from, flow.bytes_to, flow.verb, size_bytes)]
    if flow.verb.fetches:
        batches.append(Batch(flow.src, flow.dst, Verb.WRITE, 0))
    return sum(map(paths.alone_ns, batches))
