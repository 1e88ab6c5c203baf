"""What one process of a run has seen, before it is put together into a recording.

On the virtual clock one process sees everything; in a live lab the shim sees
the switches and the NIC process the hosts. Plain values, so that they can be
handed from one process to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from emu.measure.raw_counters import RawCounters
from emu.measure.recording import (
    Counters,
    Deadlock,
    FailedQueuePair,
    FaultRecord,
    FlowRecord,
    JobRecord,
    StepRecord,
    SweepRecord,
)
from emu.measure.requests import Requests
from emu.measure.timeline import Timeline

Histogram = NDArray[np.uint64]
"""(1024,): counts per bucket; see emu/core/observe/latency_histogram.h for the buckets' bounds."""


@dataclass(frozen=True)
class Samples:
    """Rows of samples: times (n,), one (n, p) array per quantity, flows (n, f)."""

    time_ns: NDArray[np.int64]
    ports: tuple[str, ...]
    queue_bytes: NDArray[np.int64]
    buffer_bytes: NDArray[np.int64]
    tx_bytes: NDArray[np.int64]
    paused_ns: NDArray[np.int64]
    credit_wait_ns: NDArray[np.int64]
    flow_bytes: NDArray[np.int64]


@dataclass(frozen=True)
class Ledger:
    """One process' share of the fidelity ledger, in wall-clock nanoseconds."""

    late_sent: Histogram
    """After they were due."""
    late_taken_in: Histogram
    """After the kernel's receive time stamp."""
    late_returned: Histogram
    """From Open vSwitch, after the switch's latency was over."""
    plane_kept: Histogram
    """How long Open vSwitch had them."""
    send_failures: int
    receive_drops: int
    overtaken: int
    """Frames that later ones of the same sender came before."""
    timeline: Timeline

    @property
    def late(self) -> tuple[Histogram, ...]:
        """The ways in which frames were late."""
        return self.late_sent, self.late_taken_in, self.late_returned


@dataclass(frozen=True)
class Observation:
    """One process' view. `ports`: raw counters by port name, of the ports it owns."""

    ports: Mapping[str, RawCounters]
    samples: Samples
    frames_exhausted: int
    captures_missed: int
    scale_up: Mapping[str, RawCounters] = field(default_factory=dict)
    """The same of the fabric inside of servers."""
    faults: tuple[FaultRecord, ...] = ()
    flows: tuple[FlowRecord, ...] = ()
    requests: Requests = field(default_factory=Requests)
    jobs: tuple[JobRecord, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    nics: dict[str, Counters] | None = None
    deadlocks: tuple[Deadlock, ...] = ()
    failed_queue_pairs: tuple[FailedQueuePair, ...] = ()
    sweeps: tuple[SweepRecord, ...] = ()
    ledger: Ledger | None = None
