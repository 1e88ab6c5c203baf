"""Plays a graph by its dependencies alone, in memory of its own."""

from __future__ import annotations

import networkx as nx
import numpy as np

from traffic.graph import NOWHERE, OperationGraph
from traffic.job import FLOAT_BYTES, Floats, Job


def played(graph: OperationGraph, job: Job, first: list[Floats]) -> dict[str, Floats]:
    """Each rank's buffer at the end, where each message carries the sender's bytes at that time."""
    buffers = dict(zip(job.ranks, (values.copy() for values in first), strict=True))
    for id in nx.topological_sort(graph.dependencies()):
        flow, count = graph.flows[graph.flow_of[id]], graph.size_bytes[id] // FLOAT_BYTES
        carried = _part(buffers[flow.src], int(graph.src_offset[id]), count).copy()
        if graph.dst_offset[id] != NOWHERE:
            _part(buffers[flow.dst], int(graph.dst_offset[id]), count)[:] = carried
        else:
            _part(buffers[flow.dst], int(graph.reduce_offset[id]), count)[:] += carried
    return buffers


def _part(buffer: Floats, at: int, count: int) -> Floats:
    assert at >= 0
    assert at % FLOAT_BYTES == 0
    part = buffer[at // FLOAT_BYTES :][:count]
    assert len(part) == count, "inside of the buffer"
    return part


def random_values(job: Job, seed: int) -> list[Floats]:
    """Small whole numbers, whose float32 sums are exact."""
    random = np.random.default_rng(seed)
    return [
        random.integers(-9, 9, job.buffer_bytes // FLOAT_BYTES).astype(np.float32)
        for _ in job.ranks
    ]
