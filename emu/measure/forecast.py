"""The least time that a collective takes on an idle fabric: arithmetic, no emulation.

A collective in k rounds of chunks is the same graph k times, one round after another. In an
idle fabric, a message of the first round starts when all messages that it waits for have arrived:

    first round    ├── head ──┤ message ├── tail ──┤      the longest chains before and after it
    a link         ├── head ──┼──────── k times its bytes / its rate ────────┼── tail ──┤

No link can finish earlier. The forecast is the latest end over all links, inside servers and
between them. For a ring it is 2(n - 1)/n·S/B, or 2(n - 1) messages one after another if that is
longer; for a tree 3·S/B plus the path of the first chunk. A run is a few per cent slower.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emu.measure.bound import INFINIBAND, Batch, Fabric, Paths, fabric_of
from emu.spec.model import Spec
from topologies.graph import Topology
from traffic.collectives.channels import Servers
from traffic.collectives.collective import Cut, chunks_of, collective
from traffic.graph import Column, OperationGraph
from traffic.job import FLOAT_BYTES, Job

_SCALE_UP_MTU = 4096


class Forecast:
    """Forecasts for collectives on one fabric."""

    def __init__(self, spec: Spec, topology: Topology) -> None:
        self._spec = spec
        self._between = Paths(topology, fabric_of(spec, topology))
        self._inside = _inside(spec)

    def took_ns(self, job: Job, cut: Cut, servers: Servers) -> int:
        """The time of a job, from the start of its first message."""
        rounds = chunks_of(job, cut, servers) // cut.channels
        graph = collective(_one_round(job, rounds), cut=Cut(None, cut.channels), servers=servers)
        between: list[Batch] = []
        inside: list[Batch] = []
        for batch in self._batches(graph, rounds):
            (inside if self._is_inside(batch.src, batch.dst) else between).append(batch)
        bounds = [self._between.last_finish_bound(between)]
        if self._inside:
            bounds.append(self._inside.last_finish_bound(inside))
        return max(bound.last_finish_ns for bound in bounds if bound)

    def _is_inside(self, src: str, dst: str) -> bool:
        return self._spec.in_one_server(src, dst)

    def _batches(self, graph: OperationGraph, rounds: int) -> Iterator[Batch]:
        """Two batches for each flow: the message that starts last, and all others."""
        lasts = self._alone_ns(graph)
        starts = _longest_chains(graph.dependents(), graph.later, lasts)
        tails = _longest_chains(_precedents(graph), graph.earlier, lasts)
        for flow in graph.flows:
            ids = np.arange(flow.operations.start, flow.operations.stop)
            last = ids[[starts[ids].argmax()]]
            for some in (last, ids[ids != last]):
                if len(some):
                    yield Batch(
                        flow.src,
                        flow.dst,
                        flow.verb,
                        size_bytes=int(graph.size_bytes[some].mean()),
                        not_before_ns=int(starts[some].min()),
                        count=rounds * len(some),
                        then_ns=int(tails[some].min()),
                    )

    def _alone_ns(self, graph: OperationGraph) -> Column:
        """The time of each message when it is alone."""
        lasts = np.zeros(len(graph.size_bytes), np.int64)
        for flow in graph.flows:
            paths = self._inside if self._is_inside(flow.src, flow.dst) else self._between
            assert paths is not None
            own = slice(flow.operations.start, flow.operations.stop)
            sizes, which = np.unique(graph.size_bytes[own], return_inverse=True)
            alone = [
                paths.alone_ns(Batch(flow.src, flow.dst, flow.verb, size))
                for size in sizes.tolist()
            ]
            lasts[own] = np.array(alone)[which]
        return lasts


def _one_round(job: Job, rounds: int) -> Job:
    """The job with a buffer of one chunk on each channel."""
    floats = max(1, job.size_bytes // FLOAT_BYTES // rounds)
    return Job(job.name, job.kind, job.algorithm, job.ranks, FLOAT_BYTES * floats, job.root)


def _precedents(graph: OperationGraph) -> tuple[Column, Column]:
    """The messages that each one waits for: the reverse of `OperationGraph.dependents`."""
    awaited = np.bincount(graph.later, minlength=len(graph.size_bytes))
    return np.concatenate([[0], np.cumsum(awaited)]), graph.earlier


def _longest_chains(following: tuple[Column, Column], waiting: Column, lasts: Column) -> Column:
    """For each message, the least time of the longest chain of messages that it waits for.

    `following`: the messages that wait for message i are `ids[first[i]:first[i + 1]]`.
    """
    first, ids = following
    waits = np.bincount(waiting, minlength=len(lasts))
    chain = np.zeros(len(lasts), np.int64)
    ready = np.flatnonzero(waits == 0)
    while len(ready):
        counts = first[ready + 1] - first[ready]
        edges = np.repeat(first[ready] - np.cumsum(counts) + counts, counts) + np.arange(
            counts.sum()
        )
        after = ids[edges]
        np.maximum.at(chain, after, np.repeat(chain[ready] + lasts[ready], counts))
        np.subtract.at(waits, after, 1)
        after = np.unique(after)
        ready = after[waits[after] == 0]
    return chain


def _inside(spec: Spec) -> Paths | None:
    """The paths inside servers: InfiniBand's packets, and switches that cut through."""
    topology, links = spec.scale_up, spec.hosts.scale_up
    if topology is None:
        return None
    switches = [switch.name for switch in topology.switches]
    fabric = Fabric(
        overhead=INFINIBAND,
        mtu_bytes={host.name: _SCALE_UP_MTU for host in topology.hosts},
        latency_ps=dict.fromkeys(switches, links.latency_ps),
        cut_through=frozenset(switches),
    )
    return Paths(topology, fabric)
