"""An estimate of the bytes that each flow will deliver, for progress displays.

The number is known before the run, unless an entry has a duration. For such an entry it is
extrapolated from the bytes delivered so far:

    delivered    ├──── 3 MB ────┤
    duration     ├───── 3/5 ────┼─────────┤      5 MB, and at most all that is planned
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traffic.graph import Column, Flow, OperationGraph


class ProgressEstimate:
    """The estimate for all flows that send messages, in their order."""

    def __init__(self, graph: OperationGraph) -> None:
        self._graph = graph
        self._planned = np.array([graph.bytes_of(flow) for flow in graph.message_flows], np.int64)
        spans = {traffic: _span_ns(graph, traffic) for traffic in graph.cut_short}
        own = [spans.get(flow.traffic, (0, 0)) for flow in graph.message_flows]
        self._begin_ns, self._end_ns = np.array(own, np.int64).reshape(-1, 2).T

    def at(self, now_ns: int, delivered: Column) -> Column:
        """An estimate, at an emulated time, from the bytes that were delivered by then."""
        lasts_ns = np.maximum(self._end_ns - self._begin_ns, 1)
        share = np.clip((now_ns - self._begin_ns) / lasts_ns, 1e-9, 1)
        estimate = np.minimum(delivered / share, self._planned).astype(np.int64)
        is_known = (self._end_ns == 0) | (delivered == 0)
        return np.where(is_known, self._planned, estimate)

    def in_the_end(self, is_skipped: NDArray[np.bool_]) -> Column:
        """The bytes of the operations that were not skipped."""
        done = np.where(is_skipped, 0, self._graph.size_bytes)
        return np.array([done[_rows(flow)].sum() for flow in self._graph.message_flows], np.int64)


def _rows(flow: Flow) -> slice:
    return slice(flow.operations.start, flow.operations.stop)


def _span_ns(graph: OperationGraph, traffic: str) -> tuple[int, int]:
    """The time at which an entry begins, and the time after which none of its operations starts."""
    rows = [_rows(flow) for flow in graph.flows if flow.traffic == traffic]
    begin_ns = min(int(graph.not_before_ns[own].min()) for own in rows)
    return begin_ns, max(int(graph.not_after_ns[own].max()) for own in rows)
