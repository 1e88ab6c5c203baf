"""What happened in a run: the value between the lab (or the virtual clock) and the report.

A recording knows nothing of how it was made. Times are emulated nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emu.clocks import CLOCKS
from emu.fabric_kind import FABRIC_KINDS, FabricKind
from emu.measure.records import (
    Counters,
    Deadlock,
    FailedQueuePair,
    FaultRecord,
    Fidelity,
    FlowRecord,
    JobRecord,
    MarkedBy,
    StepRecord,
    SweepRecord,
)
from emu.measure.requests import Requests
from emu.models import MODELS, PACKETS


@dataclass(frozen=True)
class Series:
    """Samples over time. n samples, p ports (as in `ports`), f flows (as in `flows`)."""

    time_ns: NDArray[np.int64]
    """(n,): when each sample was taken."""
    ports: tuple[str, ...]
    """(p,): names of the ports, `leaf1:h1`."""
    queue_bytes: NDArray[np.int64]
    """(n, p): egress queue, all classes together."""
    buffer_bytes: NDArray[np.int64]
    """(n, p): ingress buffer occupied by frames that came in here."""
    tx_bytes: NDArray[np.int64]
    """(n, p): bytes put on the wire so far, with framing."""
    paused_ns: NDArray[np.int64]
    """(n, p): time so far that the far end kept priorities paused (PFC, summed over them), or the
    link (802.3x, counted once)."""
    credit_wait_ns: NDArray[np.int64]
    """(n, p): time so far that data waited for credit (summed over VLs)."""
    flows: tuple[str, ...]
    """(f,): names of the flows."""
    flow_bytes: NDArray[np.int64]
    """(n, f): message bytes delivered so far."""
    late_time_ns: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """(m,): ends of intervals; none on the virtual clock."""
    late_ns: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """(m,): the most that a frame was late in each."""
    late_up_to_ns: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """(k,): upper bounds of the lateness histogram's buckets, without empty ones."""
    late_frames: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """(k,): frames in each of these buckets."""


@dataclass(frozen=True)
class MachineSeries:
    """The load and the hiccups of the machine over the run. Times are emulated.

    m intervals, k ways to lose a frame, s samples of the processors, w users of them. All are empty
    on the virtual clock.
    """

    ledger_time_ns: NDArray[np.int64]
    """(m,): ends of intervals, up to the last in which anything happened."""
    kept_ns: NDArray[np.int64]
    """(m,): the longest that Open vSwitch had a frame, of those that came back in each."""
    losses: tuple[str, ...]
    """(k,): ways to lose a frame. Frames are lost to `ovs`, `arriving` at a full buffer or ring,
    `leaving` where the kernel refused them; and their `place` is lost to later frames of the same
    sender."""
    lost_frames: NDArray[np.int64]
    """(m, k): in each interval. Those to `ovs` where it got them, others where it was noticed."""
    cpu_time_ns: NDArray[np.int64]
    """(s,): the first is before the run begins."""
    cpu_users: tuple[str, ...]
    """(w,): users of the processors, as in `Recording.cpu_seconds`."""
    cpu_ns: NDArray[np.int64]
    """(s, w): processor time that each has used so far, by the clock on the wall."""


_NONE, _NO_ROWS = np.zeros(0, np.int64), np.zeros((0, 0), np.int64)
NO_MACHINE = MachineSeries(_NONE, _NONE, (), _NO_ROWS, _NONE, (), _NO_ROWS)


@dataclass(frozen=True)
class Recording:
    """One run of one spec."""

    name: str
    fabric: str
    """`roce` or `ib`."""
    plane: str
    """`ovs` or `shim`; `none` in the flow model."""
    clock: str
    """`exact`, `virtual` or `real`."""
    slowdown: float
    seed: int
    marker: MarkedBy
    flows: tuple[FlowRecord, ...]
    ports: dict[str, Counters]
    hosts: dict[str, Counters]
    totals: Counters
    series: Series
    fidelity: Fidelity
    wall_seconds: float
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    """Processor time while traffic ran: of the `shim`, the `nics`, `ovs`, and of all `other`
    programs; and what was `stolen`, taken from this machine by the one that hosts it. Empty
    on the virtual clock."""
    machine: MachineSeries = NO_MACHINE
    requests: Requests = field(default_factory=Requests)
    jobs: tuple[JobRecord, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    scale_up: dict[str, Counters] = field(default_factory=dict)
    """Ports of the fabric inside of servers, `nvswitch1:h1`, `h1:nvswitch1` -> its counters."""
    faults: tuple[FaultRecord, ...] = ()
    deadlocks: tuple[Deadlock, ...] = ()
    failed_queue_pairs: tuple[FailedQueuePair, ...] = ()
    sweeps: tuple[SweepRecord, ...] = ()
    captures: dict[str, Path] = field(default_factory=dict)
    """Port name -> capture file."""
    notes: tuple[str, ...] = ()
    """What a reader should know: a fallback that was taken, why `auto` chose what it did."""
    partial: bool = False
    """It was made while the run was still going on."""
    model: str = PACKETS.name
    """`packets` or `flow`."""
    not_known: tuple[str, ...] = ()
    """What the model does not know, in sentences."""
    warnings: tuple[str, ...] = ()
    """Where the model is wrong about this very run, in sentences."""

    @property
    def has_packets(self) -> bool:
        """Whether the model knows packets. If not, there are no counters (`ports`, `hosts`,
        `totals`), and the series have no columns for queues, buffers, pauses and credits."""
        return MODELS[self.model].has_packets

    @property
    def fabric_kind(self) -> FabricKind:
        return FABRIC_KINDS[self.fabric]

    @property
    def is_exact(self) -> bool:
        """Whether its clock keeps every event to its time, so that there is no lateness."""
        return CLOCKS[self.clock].is_exact
