"""Requests of applications: a row for each message, or for each I/O of several messages.

A flow's record holds the arrival of its last byte. These rows hold the duration of each request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from emu.measure.percentile import percentiles
from traffic.graph import Asks, OperationGraph

Column = NDArray[np.int64]

UNFINISHED = -1
"""As a time: the request did not finish."""
UNKNOWN = -1
"""As a duration: not computed."""
_SHARES = (0.5, 0.9, 0.95, 0.99, 0.999, 1.0)


def _no_rows() -> Column:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Requests:
    """Columns of n rows, in emulated nanoseconds."""

    traffic: tuple[str, ...] = ()
    """(t,): names of the entries of the spec's `traffic:` that requests belong to."""
    of: Column = field(default_factory=_no_rows)
    """(n,): place of a request's entry in `traffic`."""
    start_ns: Column = field(default_factory=_no_rows)
    """(n,): when it was posted; -1 (UNFINISHED): it was not."""
    end_ns: Column = field(default_factory=_no_rows)
    """(n,): when the last of its bytes was in memory; -1 (UNFINISHED): never."""
    asks: Column = field(default_factory=_no_rows)
    """(n,): its kind, as in `traffic.graph.Asks`; default: messages."""
    carries: Column = field(default_factory=_no_rows)
    """(n,): its payload in bytes; default: 0."""
    alone_ns: Column = field(default_factory=_no_rows)
    """(n,): its duration on an idle path; -1 (UNKNOWN, the default): not computed."""

    def __post_init__(self) -> None:
        for name, value in (("asks", 0), ("carries", 0), ("alone_ns", UNKNOWN)):
            if len(getattr(self, name)) != len(self.of):
                object.__setattr__(self, name, np.full(len(self.of), value))

    @classmethod
    def of_graph(
        cls,
        graph: OperationGraph,
        *,
        start_ns: Column,
        end_ns: Column,
        skipped: NDArray[np.bool_],
    ) -> Requests:
        """Those of a workload. Each column has a row for each of its requests; `skipped`: whether
        the first operation was skipped."""
        names = tuple(dict.fromkeys(flow.traffic for flow in graph.flows))
        number = {name: place for place, name in enumerate(names)}
        entry_of_flow = np.array([number[flow.traffic] for flow in graph.flows], np.int64)
        return cls(
            traffic=names,
            of=entry_of_flow[graph.flow_of[graph.begins]],
            start_ns=start_ns,
            end_ns=end_ns,
            asks=np.where(skipped, Asks.NOTHING, graph.asks),
            carries=graph.carries,
        )

    @property
    def are_parts(self) -> NDArray[np.bool_]:
        """(n,): whether a row is a part of another request, such as the transfer of a prompt."""
        return np.isin(self.asks, [asks for asks in Asks if asks.is_part])

    def asked_for(self) -> Requests:
        """Without skipped requests."""
        rows = self.asks != Asks.NOTHING
        columns = ("of", "start_ns", "end_ns", "asks", "carries", "alone_ns")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})


@dataclass(frozen=True)
class Latency:
    """Durations of one entry's requests. Times cover finished requests; None: none finished."""

    traffic: str
    requests: int
    unfinished: int
    mean_ns: int | None
    p50_ns: int | None
    p90_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    max_ns: int | None

    @property
    def finished(self) -> int:
        """How many requests the times cover."""
        return self.requests - self.unfinished


def latencies(requests: Requests) -> tuple[Latency, ...]:
    """Of each entry that has requests. Parts of requests do not count."""
    whole = np.flatnonzero(~requests.are_parts)
    return tuple(
        latency_of(
            requests.traffic[place], requests.start_ns[whole[own]], requests.end_ns[whole[own]]
        )
        for place, own in _by_entry(requests.of[whole])
    )


def _by_entry(of: Column) -> Iterator[tuple[int, Column]]:
    """The entries that rows are `of`, each with the numbers of its rows."""
    order = np.argsort(of, kind="stable")
    places, first = np.unique(of[order], return_index=True)
    yield from zip(places.tolist(), np.split(order, first)[1:], strict=True)


def latency_of(traffic: str, start_ns: Column, end_ns: Column) -> Latency:
    """Of the requests with these times, which are all of that entry."""
    over = end_ns != UNFINISHED
    took = end_ns[over] - start_ns[over]
    p50, p90, p95, p99, p999, most = (
        map(round, percentiles(took, _SHARES)) if len(took) else [None] * len(_SHARES)
    )
    return Latency(
        traffic=traffic,
        requests=len(over),
        unfinished=int((~over).sum()),
        mean_ns=round(float(took.mean())) if len(took) else None,
        p50_ns=p50,
        p90_ns=p90,
        p95_ns=p95,
        p99_ns=p99,
        p999_ns=p999,
        max_ns=most,
    )
