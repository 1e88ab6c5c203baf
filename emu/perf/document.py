"""What `emu perf --json` prints, as types. `emu schema perf` prints its schema, which only gains
keys."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import TypedDict  # of which pydantic makes a schema on Python 3.11

PERF_SCHEMA = "emu-perf/1"


@dataclass(frozen=True)
class Bandwidth:
    """One message size of a `_bw` benchmark."""

    size_bytes: int
    """Bytes of a message."""
    iterations: int
    """Messages."""
    peak_gbps: float
    """The highest rate of message bytes over any run of consecutive messages, from the posting of
    the first to the end of the last."""
    average_gbps: float
    """The rate of message bytes over all messages."""
    message_rate_mpps: float
    """Millions of messages a second."""


@dataclass(frozen=True)
class Latency:
    """One message size of a `_lat` benchmark. Times are emulated microseconds."""

    size_bytes: int
    """Bytes of a message."""
    iterations: int
    """Messages."""
    t_min: float
    """The shortest."""
    t_max: float
    """The longest."""
    t_typical: float
    """The median."""
    t_avg: float
    """The mean."""
    t_stdev: float
    """The standard deviation."""
    p99: float
    """The 99th percentile."""
    p999: float
    """The 99.9th percentile."""


class Perf(TypedDict):
    """The figures of one benchmark."""

    schema: str
    """Name and version of this document's format."""
    test: str
    """Name of the benchmark: `write_bw`, `send_lat`, ..."""
    results: list[Bandwidth | Latency]
    """Each message size: `Bandwidth` of a `_bw` benchmark, `Latency` of a `_lat` one."""
