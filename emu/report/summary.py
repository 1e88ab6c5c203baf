"""A run as one JSON document: what scripts, tests and `--json` read.

Times are emulated nanoseconds, rates bits per second, sizes bytes, all of them
integers; only slowdowns, of the run and of messages, and seconds are fractions. Keys are only ever
added: whoever reads schema 1 today can read it tomorrow.

Flows that did not finish are listed like the others, with `end_ns: null` and
`completed: false`: leaving them out would make a lossy fabric look fast.

Every document the project writes goes through `to_json`, so that it is JSON
(no NaN, no numpy types) and byte-identical for identical runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import NotRequired, TypedDict, cast

from emu.measure.fct import FctSlowdown, fct_slowdowns
from emu.measure.ios import IoFigures, io_figures
from emu.measure.recording import (
    Counters,
    Deadlock,
    FlowRecord,
    JobRecord,
    Recording,
    StepRecord,
)
from emu.measure.requests import latencies
from emu.report.json_text import indented_json

SUMMARY_SCHEMA = "emu.summary/1"
COMPARISON_SCHEMA = "emu.comparison/1"

TOTALS = (
    "packets",
    "packet_hops",
    "drops_lossless",
    "drops_lossy",
    "drops_fault",
    "ce_marked",
    "cnp",
    "pause_frames",
    "retransmitted_packets",
    "credit_updates",
)
"""Totals every summary has; zero where a fabric has no such thing."""


class FidelitySummary(TypedDict):
    """How well the machine kept to the schedule. Over budget, no number below is a result."""

    verdict: str
    """`ok` or `inconclusive`."""
    late_p50_ns: int
    """How late frames left or were taken in: 50 % of them no later than this, emulated."""
    late_p99_ns: int
    """99 % of them."""
    late_max_ns: int
    """The latest of them."""
    late_p50_wall_ns: NotRequired[int]
    """The same by the clock on the wall; not on the virtual clock, which has none."""
    late_p99_wall_ns: NotRequired[int]
    """As late_p50_wall_ns, 99 % of the frames."""
    late_max_wall_ns: NotRequired[int]
    """As late_p50_wall_ns, the latest frame."""
    ovs_kept_p50_ns: int
    """How long Open vSwitch had a frame, of which the switch's latency is made."""
    ovs_kept_p99_ns: int
    """As ovs_kept_p50_ns, 99 % of the frames."""
    ovs_kept_max_ns: int
    """As ovs_kept_p50_ns, the longest."""
    budget_ns: int
    """What `late_p99_ns` may be."""
    reasons: list[str]
    """Why it is inconclusive; empty when it is ok."""


class FlowSummary(TypedDict):
    """One flow: all messages of one pair of hosts in one entry of the spec's `traffic:`."""

    name: str
    """Name of the flow, which checks use: `incast.h2-h1`."""
    traffic: str
    """Name of that entry."""
    src: str
    """The host that sends."""
    dst: str
    """The host that receives."""
    op: str
    """`write` or `send`."""
    bytes: int
    """Offered, that is to be delivered."""
    start_ns: int
    """When its first message was posted."""
    end_ns: int | None
    """When the last byte was in the receiver's memory; null: never."""
    goodput_bps: int
    """Bits of message per second from start to end; of a flow without an end `delivered_bytes`
    over the time to `observed_until_ns`."""
    retransmitted_packets: int
    """Packets of it that were sent again."""
    completed: bool
    """Delivered, acknowledged, and every byte compared equal at the receiver."""
    delivered_bytes: int | None
    """In the receiver's memory; null: nobody knows."""
    observed_until_ns: int | None
    """When it was last looked at; null: nobody knows."""


class FailedQueuePairSummary(TypedDict):
    """A queue pair that went to the error state."""

    flow: str
    """The flow whose message failed first."""
    src: str
    """The host that gave up."""
    dst: str
    """The host at the other end."""
    at_ns: int
    """When it gave up."""
    status: str
    """Of the completion of the message that failed first, as libibverbs names it."""


class LatencySummary(TypedDict):
    """How long the requests (messages, or I/Os of several) of one entry of `traffic:` took."""

    traffic: str
    """Name of that entry."""
    requests: int
    """How many there were."""
    unfinished: int
    """How many of them did not finish in the run."""
    mean_ns: int | None
    """Of the finished, as all that follow; null if none is."""
    p50_ns: int | None
    """The median."""
    p90_ns: int | None
    """90 % took no longer."""
    p95_ns: int | None
    """95 % took no longer."""
    p99_ns: int | None
    """99 % took no longer."""
    p999_ns: int | None
    """99.9 % took no longer."""
    max_ns: int | None
    """The longest."""


class IoSummary(LatencySummary):
    """The reads, or the writes, of one entry of `traffic:`, as fio counts them."""

    way: str
    """`read` or `write`."""
    iops: int | None
    """I/Os a second, over the run time of the entry; null if none was over."""
    bandwidth_bps: int | None
    """Bits of blocks per second, over the run time of the entry; null if no I/O was over."""


class BucketSummary(TypedDict):
    """Completion times of messages of about one size, as multiples of what they take alone."""

    up_to_bytes: int
    """Size of the largest message in the bucket."""
    messages: int
    """How many there were."""
    unfinished: int
    """How many of them did not finish in the run."""
    mean: float | None
    """Of the finished, as all that follow; null if none is."""
    p50: float | None
    """The median."""
    p95: float | None
    """95 % took no more."""
    p99: float | None
    """99 % took no more."""


class FctSummary(TypedDict):
    """FCT slowdown of a background load."""

    traffic: str
    """Name of the entry, of pattern background."""
    whole: BucketSummary
    """All messages of the entry."""
    buckets: list[BucketSummary]
    """By size, as many messages in each, the smallest first."""


class JobSummary(TypedDict):
    """One collective."""

    name: str
    """Name of its entry in the spec's `traffic:`."""
    collective: str
    """What was computed, e.g. all_reduce."""
    algorithm: str
    """How, e.g. ring."""
    ranks: int
    """How many hosts took part."""
    bytes: int
    """As nccl-tests counts them."""
    bus_factor: float
    """`busbw_bps` over `algbw_bps`."""
    start_ns: int | None
    """When its first message was posted."""
    end_ns: int | None
    """null: it did not finish."""
    algbw_bps: int | None
    """Bytes over time, in bits per second, as nccl-tests defines it; null: it did not finish."""
    busbw_bps: int | None
    """Bits per second, as nccl-tests defines it."""
    wrong: int | None
    """Values that are not what they must be; null: nobody could look."""


class StepSummary(TypedDict):
    """Work of many ranks, and what they sent each other for it: a training step, for one."""

    name: str
    """Name of its entry in the spec's `traffic:`."""
    start_ns: int | None
    """When its first message was posted, or its first work began."""
    end_ns: int | None
    """null: it did not finish."""
    work_alone_ns: int
    """How long it would have taken if messages took no time."""
    exposed_ns: int | None
    """What communication added to that."""
    bytes_for: dict[str, int]
    """Bytes that all ranks send together, by what for."""


class FaultSummary(TypedDict):
    """One fault of the spec's `faults:`, and what it did."""

    name: str
    """Its name in the spec, or its kind and number."""
    kind: str
    """Its key in the spec, e.g. link-down."""
    place: str
    """The cable, by a port of it, or the host."""
    at_ns: int
    """When it began."""
    end_ns: int | None
    """null: it lasted to the end of the run."""
    packets_seen: int
    """Packets that it might have hit."""
    hits: int
    """Packets that it did something to; times that a link went down; pauses that were told."""
    packets_dropped: int
    """Packets that it dropped."""


class DeadlockSummary(TypedDict):
    """A circle of switch ports that wait for each other, by PFC or for credit."""

    found_ns: int
    """When it was found."""
    priority: int
    """The priority that is paused; InfiniBand: the virtual lane at the first port."""
    ports: list[str]
    """Each waits for a switch whose packets wait at the next, the last for that of the first."""


class SweepSummary(TypedDict):
    """InfiniBand's subnet manager has routed the fabric anew, because links had changed."""

    at_ns: int
    """When they changed."""
    in_force_ns: int
    """From when on the last switch followed the new tables."""
    seconds: float | None
    """Wall-clock time from the change to the tables; null where they were known beforehand."""


class Summary(TypedDict):
    """One run of one spec."""

    schema: str
    """Name and version of this document's format."""
    name: str
    """Name of the spec, or of the variant."""
    fabric: str
    """`roce` or `ib`."""
    plane: str
    """Who forwards: `ovs` or `shim`."""
    clock: str
    """`real` or `virtual`."""
    slowdown: float
    """How many times slower than real the fabric ran; 1 on the virtual clock."""
    seed: int
    """The seed of everything random."""
    marker: str
    """Who marks CE: `ebpf`, `red`, `shim` or `none`."""
    fidelity: FidelitySummary
    """How well the machine kept to the schedule."""
    flows: list[FlowSummary]
    """Every flow, finished or not."""
    latencies: list[LatencySummary]
    """Latencies of requests, by entry of `traffic:`."""
    ios: list[IoSummary]
    """I/Os of storage."""
    fct_slowdowns: list[FctSummary]
    """FCT slowdowns of background loads."""
    jobs: list[JobSummary]
    """Collectives."""
    steps: list[StepSummary]
    """Training steps and the like."""
    ports: dict[str, Counters]
    """Port name (`leaf1:h1` is leaf1's port towards h1) -> its counters."""
    hosts: dict[str, Counters]
    """Host -> the counters of its NIC, and of its end of the cable."""
    scale_up: dict[str, Counters]
    """Ports of the fabric inside of servers, under InfiniBand's names."""
    totals: Counters
    """Counters of the whole fabric."""
    faults: list[FaultSummary]
    """Faults, and what they did."""
    deadlocks: list[DeadlockSummary]
    """Deadlocks that were found."""
    failed_queue_pairs: list[FailedQueuePairSummary]
    """Queue pairs that gave up, or were refused."""
    sweeps: list[SweepSummary]
    """Sweeps of the subnet manager."""
    captures: dict[str, str]
    """Port name -> capture file, in the folder of this summary."""
    notes: list[str]
    """Fallbacks that were taken, and why `auto` chose what it did."""
    wall_seconds: float
    """How long the run took, by the clock on the wall."""
    cpu_seconds: dict[str, float]
    """Processor time while traffic ran: `shim`, `nics`, `ovs`, `other` programs, and `stolen` by
    the machine's host; empty on the virtual clock."""


class Comparison(TypedDict):
    """The same workload over several fabrics."""

    schema: str
    runs: dict[str, Summary]
    missing: list[str]
    """Variants without a result: the comparison was stopped, or one of them failed."""


def summarise(recording: Recording) -> Summary:
    """The summary of one run."""
    return Summary(
        schema=SUMMARY_SCHEMA,
        name=recording.name,
        fabric=recording.fabric,
        plane=recording.plane,
        clock=recording.clock,
        slowdown=float(recording.slowdown),
        seed=int(recording.seed),
        marker=recording.marker,
        fidelity=_fidelity(recording),
        flows=[_flow(flow) for flow in recording.flows],
        latencies=[cast(LatencySummary, {**vars(row)}) for row in latencies(recording.requests)],
        ios=[_ios(figures) for figures in io_figures(recording.requests)],
        fct_slowdowns=[_fct(slowdown) for slowdown in fct_slowdowns(recording.requests)],
        jobs=[_job(job) for job in recording.jobs],
        steps=[_step(step) for step in recording.steps],
        ports=dict(recording.ports),
        hosts=dict(recording.hosts),
        scale_up=dict(recording.scale_up),
        totals=dict.fromkeys(TOTALS, 0)
        | {name: int(total) for name, total in recording.totals.items()},
        faults=[cast(FaultSummary, asdict(fault)) for fault in recording.faults],
        deadlocks=[_deadlock(deadlock) for deadlock in recording.deadlocks],
        failed_queue_pairs=[
            cast(FailedQueuePairSummary, asdict(found)) for found in recording.failed_queue_pairs
        ],
        sweeps=[cast(SweepSummary, asdict(sweep)) for sweep in recording.sweeps],
        captures={port: path.name for port, path in recording.captures.items()},
        notes=list(recording.notes),
        wall_seconds=float(recording.wall_seconds),
        cpu_seconds=dict(recording.cpu_seconds),
    )


def compare(recordings: Mapping[str, Recording], missing: Sequence[str] = ()) -> Comparison:
    """The summaries of several runs, by name, in the order given.

    `missing`: variants that did not run to their end.
    """
    return Comparison(
        schema=COMPARISON_SCHEMA,
        runs={name: summarise(recording) for name, recording in recordings.items()},
        missing=list(missing),
    )


def to_json(document: Mapping[str, object]) -> str:
    """The document's text. Raises ValueError for a number JSON does not know."""
    return indented_json(document) + "\n"


def _fidelity(recording: Recording) -> FidelitySummary:
    fidelity = recording.fidelity
    told = FidelitySummary(
        verdict=fidelity.verdict,
        late_p50_ns=int(fidelity.late_p50_ns),
        late_p99_ns=int(fidelity.late_p99_ns),
        late_max_ns=int(fidelity.late_max_ns),
        ovs_kept_p50_ns=int(fidelity.ovs_kept_p50_ns),
        ovs_kept_p99_ns=int(fidelity.ovs_kept_p99_ns),
        ovs_kept_max_ns=int(fidelity.ovs_kept_max_ns),
        budget_ns=int(fidelity.budget_ns),
        reasons=list(fidelity.reasons),
    )
    if not recording.is_exact:
        told["late_p50_wall_ns"] = round(fidelity.late_p50_ns * recording.slowdown)
        told["late_p99_wall_ns"] = round(fidelity.late_p99_ns * recording.slowdown)
        told["late_max_wall_ns"] = round(fidelity.late_max_ns * recording.slowdown)
    return told


def _flow(flow: FlowRecord) -> FlowSummary:
    return FlowSummary(
        name=flow.name,
        traffic=flow.traffic,
        src=flow.src,
        dst=flow.dst,
        op=flow.op,
        bytes=int(flow.bytes),
        start_ns=int(flow.start_ns),
        end_ns=None if flow.end_ns is None else int(flow.end_ns),
        goodput_bps=flow.goodput_bps,
        retransmitted_packets=int(flow.retransmitted_packets),
        completed=bool(flow.completed),
        delivered_bytes=None if flow.delivered_bytes is None else int(flow.delivered_bytes),
        observed_until_ns=None if flow.observed_until_ns is None else int(flow.observed_until_ns),
    )


def _ios(figures: IoFigures) -> IoSummary:
    latency = cast(LatencySummary, asdict(figures.latency))
    return IoSummary(
        **latency,
        way=figures.way,
        iops=figures.iops,
        bandwidth_bps=figures.bandwidth_bps,
    )


def _fct(slowdown: FctSlowdown) -> FctSummary:
    return FctSummary(
        traffic=slowdown.traffic,
        whole=cast(BucketSummary, asdict(slowdown.whole)),
        buckets=[cast(BucketSummary, asdict(bucket)) for bucket in slowdown.buckets],
    )


def _job(job: JobRecord) -> JobSummary:
    return JobSummary(
        name=job.name,
        collective=job.collective,
        algorithm=job.algorithm,
        ranks=job.ranks,
        bytes=job.bytes,
        bus_factor=job.bus_factor,
        start_ns=job.start_ns,
        end_ns=job.end_ns,
        algbw_bps=_bits(job.algbw_bytes_per_s),
        busbw_bps=_bits(job.busbw_bytes_per_s),
        wrong=job.wrong,
    )


def _step(step: StepRecord) -> StepSummary:
    return StepSummary(
        name=step.name,
        start_ns=step.start_ns,
        end_ns=step.end_ns,
        work_alone_ns=step.work_alone_ns,
        exposed_ns=step.exposed_ns,
        bytes_for=dict(step.bytes_for),
    )


def _bits(bytes_per_s: float | None) -> int | None:
    return None if bytes_per_s is None else round(bytes_per_s * 8)


def _deadlock(deadlock: Deadlock) -> DeadlockSummary:
    return DeadlockSummary(
        found_ns=int(deadlock.found_ns),
        priority=int(deadlock.priority),
        ports=list(deadlock.ports),
    )
