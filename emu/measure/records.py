"""The results of a run for each flow, job, fault and failure.

Times are emulated nanoseconds. Clients of labs read these, too, so nothing here takes long to
import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from traffic.verb import Verb

if TYPE_CHECKING:
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
