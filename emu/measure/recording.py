"""What happened in a run: the value between the lab (or the virtual clock) and the report.

A recording knows nothing of how it was made. Times are emulated nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from emu.clocks import CLOCKS
from emu.fabric_kind import FABRIC_KINDS, FabricKind
from emu.measure.requests import Requests
from emu.models import MODELS, PACKETS
from traffic.graph import Verb
from traffic.job import Job

Counters = dict[str, int]
"""Counters under the names operators know, e.g. `tx_prio3_pause`, `np_cnp_sent`, `PortXmitWait`."""

MarkedBy = Literal["ebpf", "red", "shim", "none"]
"""What sets CE: a program in the kernel, the kernel's RED, the switch model, or nothing."""


@dataclass(frozen=True)
class Fidelity:
    """How faithfully the machine kept to the schedule; all zero on the virtual clock.

    `late_*`: how long after its scheduled time a frame really left, emulated.
    `ovs_kept_*`: how long Open vSwitch had a frame, emulated; zero where it forwards none.
    """

    verdict: str = "ok"
    """`ok` or `inconclusive`."""
    late_p50_ns: int = 0
    late_p99_ns: int = 0
    late_max_ns: int = 0
    ovs_kept_p50_ns: int = 0
    ovs_kept_p99_ns: int = 0
    ovs_kept_max_ns: int = 0
    budget_ns: int = 0
    """One MTU's serialisation on the fastest link: the most that late_p99_ns may be."""
    reasons: tuple[str, ...] = ()


TCP = "tcp"
"""The `op` of a flow that the kernel's TCP carries. All others are verbs."""


@dataclass(frozen=True)
class FlowRecord:
    """One flow. `end_ns` is when its last byte was in the receiver's memory."""

    name: str
    traffic: str
    src: str
    dst: str
    op: str
    bytes: int
    start_ns: int
    end_ns: int | None
    retransmitted_packets: int | None
    """None: the model knows no packets."""
    completed: bool
    """Delivered, acknowledged, and every byte compared equal at the receiver."""
    delivered_bytes: int | None = None
    """Bytes in the receiver's memory; None: all of them if `end_ns` is known, else unknown."""
    observed_until_ns: int | None = None
    """When the flow was last observed; None: unknown."""

    @property
    def bytes_from(self) -> str:
        """The host that sends the payload: the responder of a READ, else `src`."""
        return self.dst if self._fetches else self.src

    @property
    def bytes_to(self) -> str:
        """The host that receives the payload."""
        return self.src if self._fetches else self.dst

    @property
    def resent(self) -> int:
        """Packets that were sent again; 0 where the model knows no packets."""
        return self.retransmitted_packets or 0

    @property
    def is_rdma(self) -> bool:
        return self.op != TCP

    @property
    def _fetches(self) -> bool:
        return self.is_rdma and Verb(self.op).fetches

    @property
    def goodput_bps(self) -> int:
        """Message bits per second from start to end. For an unfinished flow: delivered bits, over
        the time that it was observed."""
        until_ns = self.observed_until_ns if self.end_ns is None else self.end_ns
        delivered = self.delivered_bytes if self.end_ns is None else self.bytes
        if until_ns is None or delivered is None or until_ns <= self.start_ns:
            return 0
        return round(delivered * 8 * 1_000_000_000 / (until_ns - self.start_ns))


@dataclass(frozen=True)
class FailedQueuePair:
    """A queue pair that entered the error state. All its work failed from then on."""

    flow: str
    """Whose message failed first."""
    src: str
    """The host that gave up."""
    dst: str
    at_ns: int
    status: str
    """Of that message's completion, by its name in libibverbs: `IBV_WC_RETRY_EXC_ERR`, ..."""


@dataclass(frozen=True)
class JobRecord:
    """One collective. It starts with its first message and ends with its last delivery."""

    name: str
    """Of its traffic entry."""
    collective: str
    """`all-reduce`, `all-gather`, ..."""
    algorithm: str
    ranks: int
    bytes: int
    """As nccl-tests counts them: of the buffer of one rank."""
    bus_factor: float
    """Bus bandwidth over algorithm bandwidth."""
    start_ns: int | None
    end_ns: int | None
    """None: it did not finish."""
    wrong: int | None
    """Wrong values in the buffers of all ranks; None: not checked, because the job did not finish
    or payloads are elided."""

    @classmethod
    def of(cls, job: Job, span_ns: tuple[int | None, int | None], wrong: int | None) -> JobRecord:
        """`span_ns`: its start and its end."""
        return cls(
            name=job.name,
            collective=job.kind.value,
            algorithm=job.algorithm,
            ranks=len(job.ranks),
            bytes=job.size_bytes,
            bus_factor=job.bus_factor,
            start_ns=span_ns[0],
            end_ns=span_ns[1],
            wrong=wrong,
        )

    @property
    def took_ns(self) -> int | None:
        return None if self.end_ns is None or self.start_ns is None else self.end_ns - self.start_ns

    @property
    def algbw_bytes_per_s(self) -> float | None:
        """Bytes over time; nccl-tests' `algbw`. None: it did not finish."""
        return self.bytes * 1e9 / self.took_ns if self.took_ns else None

    @property
    def busbw_bytes_per_s(self) -> float | None:
        """What a link carries, whatever the number of ranks; nccl-tests' `busbw`."""
        return None if self.algbw_bytes_per_s is None else self.algbw_bytes_per_s * self.bus_factor


@dataclass(frozen=True)
class StepRecord:
    """Work of many ranks and the messages between them, such as a training step."""

    name: str
    """Of its traffic entry."""
    start_ns: int | None
    end_ns: int | None
    """None: it did not finish."""
    work_alone_ns: int
    """How long it would have taken if messages took no time."""
    bytes_for: dict[str, int]
    """Bytes that all ranks send together, by what for."""

    @property
    def took_ns(self) -> int | None:
        return None if self.end_ns is None or self.start_ns is None else self.end_ns - self.start_ns

    @property
    def exposed_ns(self) -> int | None:
        """Time that communication adds to the work: the part that does not overlap with it."""
        return None if self.took_ns is None else self.took_ns - self.work_alone_ns


@dataclass(frozen=True)
class FaultRecord:
    """One fault of the spec, and its effects."""

    name: str
    kind: str
    """Its key in the spec: `link-down`, `loss`, ..."""
    place: str
    """The cable, by a port of it, the switch or the host."""
    at_ns: int
    end_ns: int | None
    """None: it lasted to the end of the run."""
    packets_seen: int
    """Packets that it might have hit; 0 for faults that do not act on packets."""
    hits: int
    """Packets that it changed or dropped (a wrong map: packets that came in on its priorities;
    wrong ECN: packets that were marked), link failures, or pauses that were sent."""
    packets_dropped: int
    """Packets that this fault dropped, and that no port counted for another reason."""


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
class Deadlock:
    """Switch ports that wait for each other in a loop, for ever: each is paused, or has no
    credit."""

    found_ns: int
    """When it was found, in emulated time."""
    priority: int
    """InfiniBand: the virtual lane at the first port."""
    ports: tuple[str, ...]
    """Each port waits for a switch whose packets wait at the next port."""


@dataclass(frozen=True)
class SweepRecord:
    """A sweep of the subnet manager that routed a changed fabric anew."""

    at_ns: int
    """When links were lost or came back."""
    in_force_ns: int
    """From when on the last switch followed the new tables."""
    seconds: float | None
    """Wall-clock time from the change to the tables; None where they were known beforehand."""


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
