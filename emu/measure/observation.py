"""What one process of a run has observed. `merge` makes a recording of all observations.

On the virtual clock one process observes everything; in a lab the shim observes the switches and
the NIC process the hosts. Observations are plain values, so that one process can send them to
another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from emu.measure.raw_counters import RawCounters
from emu.measure.records import (
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
class Timing:
    """How late one process sent and received frames, in wall-clock nanoseconds, and the frames that
    the machine lost or reordered."""

    late_sent: Histogram
    """How late frames left."""
    late_taken_in: Histogram
    """How long after the kernel's receive time stamp the process read them."""
    late_returned: Histogram
    """How long after the end of the switch's latency they returned from Open vSwitch."""
    plane_kept: Histogram
    """How long Open vSwitch kept them."""
    send_failures: int
    receive_drops: int
    overtaken: int
    """Frames that arrived after a later frame of the same sender."""
    timeline: Timeline

    @property
    def late(self) -> tuple[Histogram, ...]:
        """The histograms of lateness."""
        return self.late_sent, self.late_taken_in, self.late_returned


@dataclass(frozen=True)
class Observation:
    """One process's observation. `ports`: raw counters of the ports it emulates, by name."""

    ports: Mapping[str, RawCounters]
    samples: Samples
    frames_exhausted: int
    captures_missed: int
    stand_ins: Mapping[str, RawCounters] = field(default_factory=dict)
    """On the exact clock: what this process counted for ports of the other one, such as packets
    that a fault of their line dropped."""
    scale_up: Mapping[str, RawCounters] = field(default_factory=dict)
    """The raw counters of the scale-up fabric inside servers."""
    faults: tuple[FaultRecord, ...] = ()
    flows: tuple[FlowRecord, ...] = ()
    requests: Requests = field(default_factory=Requests)
    jobs: tuple[JobRecord, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    nics: dict[str, Counters] | None = None
    deadlocks: tuple[Deadlock, ...] = ()
    failed_queue_pairs: tuple[FailedQueuePair, ...] = ()
    sweeps: tuple[SweepRecord, ...] = ()
    timing: Timing | None = None
