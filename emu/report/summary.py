"""A run as one JSON document, which scripts, tests and `--json` read.

Times are emulated nanoseconds, rates bits per second and sizes bytes, all of them integers.
Only slowdowns, of the run and of messages, and wall-clock seconds are fractions. Schema 1 only
gains keys, so that a program that reads it today can read it tomorrow.

Flows that did not finish are listed like the others, with `end_ns: null` and
`completed: false`. Without them, a lossy fabric would look fast.

Every document of the project goes through `to_json`, so that it is valid JSON
(no NaN, no numpy types) and byte-identical for identical runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import NotRequired, cast

from typing_extensions import TypedDict  # of which pydantic makes a schema on Python 3.11

from emu.measure.fct import FctSlowdown, fct_slowdowns
from emu.measure.ios import IoFigures, io_figures
from emu.measure.prompts import KV_WAIT_MARK_NS, TTFT_MARK_NS, PromptFigures, prompt_figures
from emu.measure.recording import Recording
from emu.measure.records import Counters, Deadlock, FlowRecord, JobRecord, StepRecord
from emu.measure.requests import latencies
from emu.report.json_text import indented_json
from emu.report.seeds_entries import OverSeedsEntry

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
"""Totals that every summary has. They are 0 where a fabric has no such thing."""


class FidelitySummary(TypedDict):
    """How well the machine kept to the schedule. When it is over budget, no figure is a result."""

    verdict: str
    """`ok` or `inconclusive`."""
    late_p50_ns: int
    """How late frames were sent or received, in emulated time: the median."""
    late_p99_ns: int
    """As late_p50_ns: the 99th percentile."""
    late_max_ns: int
    """As late_p50_ns: the maximum."""
    late_p50_wall_ns: NotRequired[int]
    """late_p50_ns in wall-clock time; of the real clock alone."""
    late_p99_wall_ns: NotRequired[int]
    """late_p99_ns in wall-clock time; of the real clock alone."""
    late_max_wall_ns: NotRequired[int]
    """late_max_ns in wall-clock time; of the real clock alone."""
    ovs_kept_p50_ns: int
    """How long Open vSwitch held a frame, which is part of the switch's latency: the median."""
    ovs_kept_p99_ns: int
    """As ovs_kept_p50_ns: the 99th percentile."""
    ovs_kept_max_ns: int
    """As ovs_kept_p50_ns: the maximum."""
    budget_ns: int
    """The greatest `late_p99_ns` of a conclusive run."""
    reasons: list[str]
    """Why the run is inconclusive; empty when it is ok."""


class FlowSummary(TypedDict):
    """One flow: all messages of one pair of hosts in one entry of the spec's `traffic:`."""

    name: str
    """Name of the flow, which checks use: `incast.h2-h1`."""
    traffic: str
    """Name of that entry of `traffic:`."""
    src: str
    """The host that sends."""
    dst: str
    """The host that receives."""
    op: str
    """`write` or `send`."""
    bytes: int
    """Bytes that were offered for delivery."""
    start_ns: int
    """When its first message was posted."""
    end_ns: int | None
    """When the last byte was in the receiver's memory; null if it never was."""
    goodput_bps: int
    """Message bits per second from start to end. For a flow without an end, it is
    `delivered_bytes` over the time from the start to `observed_until_ns`."""
    retransmitted_packets: int | None
    """The number of its packets that were sent again; null in the flow model, which has none."""
    completed: bool
    """Whether all bytes were delivered, acknowledged and equal at the receiver."""
    delivered_bytes: int | None
    """Bytes in the receiver's memory; null if unknown."""
    observed_until_ns: int | None
    """When the flow was observed for the last time; null if unknown."""


class FailedQueuePairSummary(TypedDict):
    """A queue pair that went to the error state."""

    flow: str
    """The flow whose message failed first."""
    src: str
    """The host whose queue pair failed."""
    dst: str
    """The host at the other end."""
    at_ns: int
    """When the queue pair failed."""
    status: str
    """Completion status of the message that failed first, under its libibverbs name."""


class LatencySummary(TypedDict):
    """How long the requests of one entry of `traffic:` took. A request is a message, or an I/O of
    several messages."""

    traffic: str
    """Name of the entry."""
    requests: int
    """The number of requests."""
    unfinished: int
    """How many requests did not finish in the run."""
    mean_ns: int | None
    """The mean. It and the figures below are of finished requests; null if none finished."""
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
    """I/Os per second over the run time of the entry; null if no I/O finished."""
    bandwidth_bps: int | None
    """Bits of blocks per second over the run time of the entry; null if no I/O finished."""


class PromptSummary(TypedDict):
    """The prompts of one inference entry of `traffic:`. Times are of finished ones."""

    traffic: str
    """Name of the entry."""
    ttft: LatencySummary
    """From the arrival of a prompt to its first token."""
    kv_transfer: LatencySummary
    """From the first message of a prompt's KV cache to its last byte."""
    kv_wait: LatencySummary
    """From the end of a prompt's prefill until its KV cache is complete: the fabric's part."""
    kv_wait_share_p50: float | None
    """The fabric's share of TTFT, 0 to 1: the median over prompts; null if no prompt finished."""
    kv_wait_share_p99: float | None
    """99 % of the prompts have no larger share."""
    kv_wait_share_max: float | None
    """The largest share."""
    ttft_mark_ns: int
    """The reference of the IETF draft on AI inference fabrics for 99 % of TTFT; not a limit."""
    kv_wait_mark_ns: int
    """Its reference for 99 % of the fabric's part; not a limit."""


class BucketSummary(TypedDict):
    """Completion times of messages of similar size, as multiples of their time on idle paths."""

    up_to_bytes: int
    """Size of the largest message in the bucket."""
    messages: int
    """The number of messages."""
    unfinished: int
    """How many messages did not finish in the run."""
    mean: float | None
    """The mean. It and the figures below are of finished messages; null if none finished."""
    p50: float | None
    """The median."""
    p95: float | None
    """95 % took no more."""
    p99: float | None
    """99 % took no more."""


class FctSummary(TypedDict):
    """FCT slowdown of a background load."""

    traffic: str
    """Name of the entry, whose pattern is background."""
    whole: BucketSummary
    """All messages of the entry."""
    buckets: list[BucketSummary]
    """Messages by size, the smallest first. Buckets have about the same number of messages."""


class JobSummary(TypedDict):
    """One collective."""

    name: str
    """Name of its entry in the spec's `traffic:`."""
    collective: str
    """The operation, e.g. all_reduce."""
    algorithm: str
    """The algorithm, e.g. ring."""
    ranks: int
    """The number of hosts that took part."""
    bytes: int
    """The size, as nccl-tests defines it."""
    bus_factor: float
    """`busbw_bps` over `algbw_bps`."""
    start_ns: int | None
    """When its first message was posted."""
    end_ns: int | None
    """When it finished; null if it did not."""
    algbw_bps: int | None
    """Size over time, in bits per second, as nccl-tests defines it; null if it did not finish."""
    busbw_bps: int | None
    """Bus bandwidth in bits per second, as nccl-tests defines it; null if it did not finish."""
    wrong: int | None
    """The number of wrong values in the result; null if they were not checked."""


class StepSummary(TypedDict):
    """Computation of many ranks and the messages between them, such as a training step."""

    name: str
    """Name of its entry in the spec's `traffic:`."""
    start_ns: int | None
    """When its first message was posted, or its first computation began."""
    end_ns: int | None
    """When it finished; null if it did not."""
    work_alone_ns: int
    """How long the step would take if messages took no time."""
    exposed_ns: int | None
    """The time that communication added to work_alone_ns; null if the step did not finish."""
    bytes_for: dict[str, int]
    """Bytes that all ranks together send, by purpose."""


class FaultSummary(TypedDict):
    """One fault of the spec's `faults:`, and what it did."""

    name: str
    """Its name in the spec, or its kind and number."""
    kind: str
    """Its key in the spec, e.g. link-down."""
    place: str
    """Where it is: a cable, named by one of its ports, a switch or a host."""
    at_ns: int
    """When it began."""
    end_ns: int | None
    """When it ended; null if it lasted to the end of the run."""
    packets_seen: int
    """The number of packets that the fault could have hit."""
    hits: int
    """The number of packets that it affected, of times that a link went down, or of pauses sent."""
    packets_dropped: int
    """The number of packets that it dropped."""


class DeadlockSummary(TypedDict):
    """A cyclic buffer dependency (PFC) or credit loop of switch ports."""

    found_ns: int
    """When it was detected."""
    priority: int
    """The paused priority; on InfiniBand, the virtual lane at the first port."""
    ports: list[str]
    """The ports in order. Each waits for the next, and the last waits for the first."""


class SweepSummary(TypedDict):
    """A sweep in which InfiniBand's subnet manager rerouted the fabric after links changed."""

    at_ns: int
    """When links changed."""
    in_force_ns: int
    """When the last switch began to use the new tables."""
    seconds: float | None
    """Wall-clock time from the change to the new tables; null if they were computed beforehand."""


class Summary(TypedDict):
    """One run of one spec."""

    model: NotRequired[str]
    """`flow`: the flow model made it, so that `ports`, `hosts` and `totals` are empty; absent: it
    is of packets."""
    not_known: NotRequired[list[str]]
    """What the model does not know, in sentences; absent: it is of packets."""
    warnings: NotRequired[list[str]]
    """Where the model is wrong about this run, in sentences; absent: it is of packets."""

    schema: str
    """Name and version of this document's format."""
    name: str
    """Name of the spec, or of the variant."""
    fabric: str
    """`roce` or `ib`."""
    plane: str
    """What forwards frames: `ovs` or `shim`; `none` in the flow model."""
    clock: str
    """`exact`, `virtual` or `real`."""
    slowdown: float
    """How many times slower than real the fabric ran; 1 but on the real clock."""
    seed: int
    """The seed of all random numbers."""
    marker: str
    """What marks CE: `ebpf`, `red`, `shim` or `none`."""
    fidelity: FidelitySummary
    """How well the machine kept to the schedule."""
    flows: list[FlowSummary]
    """Every flow, finished or not."""
    latencies: list[LatencySummary]
    """Latencies of requests, by entry of `traffic:`."""
    ios: list[IoSummary]
    """Figures of storage I/O, for each entry's reads and writes."""
    prompts: list[PromptSummary]
    """Prompts of inference."""
    fct_slowdowns: list[FctSummary]
    """FCT slowdowns of background loads."""
    jobs: list[JobSummary]
    """Collectives."""
    steps: list[StepSummary]
    """Training steps and similar work."""
    ports: dict[str, Counters]
    """Port name (`leaf1:h1` is leaf1's port towards h1) -> its counters."""
    hosts: dict[str, Counters]
    """Host -> the counters of its NIC and of its port."""
    scale_up: dict[str, Counters]
    """Port of the scale-up fabric inside a server -> its counters, under InfiniBand's names."""
    totals: Counters
    """Counters of the whole fabric."""
    faults: list[FaultSummary]
    """Faults, and what they did."""
    deadlocks: list[DeadlockSummary]
    """Deadlocks that were found."""
    failed_queue_pairs: list[FailedQueuePairSummary]
    """Queue pairs that went to the error state."""
    sweeps: list[SweepSummary]
    """Sweeps of the subnet manager."""
    captures: dict[str, str]
    """Port name -> capture file, in the folder of this summary."""
    notes: list[str]
    """Fallbacks that were taken, and the reasons for choices of `auto`."""
    partial: NotRequired[bool]
    """Present, and true, if the run was still going on when this was written. If it is still there
    later, the run was killed."""
    wall_seconds: float
    """How long the run took, in wall-clock time."""
    cpu_seconds: dict[str, float]
    """Processor time while traffic ran, by user: `shim`, `nics`, `ovs`, `other` programs, and time
    `stolen` by the hypervisor; empty on the virtual clock."""


class Comparison(TypedDict):
    """The same workload over several fabrics."""

    schema: str
    """Name and version of this document's format."""
    runs: dict[str, Summary]
    """Variant -> its summary."""
    missing: list[str]
    """Variants without a result, because the comparison was stopped or a variant failed."""
    over_seeds: NotRequired[OverSeedsEntry]
    """Of `--seeds`: intervals of each variant's figures, and differences between variants. `runs`
    are those of the first seed."""


def summarise(recording: Recording) -> Summary:
    """The summary of one run."""
    summary = _summary(recording)
    if recording.partial:
        summary["partial"] = True
    if not recording.has_packets:
        summary["model"] = recording.model
        summary["not_known"] = list(recording.not_known)
        summary["warnings"] = list(recording.warnings)
        summary["totals"] = {}
    return summary


def _summary(recording: Recording) -> Summary:
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
        prompts=[_prompts(figures) for figures in prompt_figures(recording.requests)],
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


def compare(
    recordings: Mapping[str, Recording],
    missing: Sequence[str] = (),
    over_seeds: OverSeedsEntry | None = None,
) -> Comparison:
    """The summaries of several runs, by name, in the order given.

    `missing`: variants without a result. `over_seeds`: the same variants over several seeds.
    """
    comparison = Comparison(
        schema=COMPARISON_SCHEMA,
        runs={name: summarise(recording) for name, recording in recordings.items()},
        missing=list(missing),
    )
    if over_seeds is not None:
        comparison["over_seeds"] = over_seeds
    return comparison


def to_json(document: Mapping[str, object]) -> str:
    """The document's text. Raises ValueError for a number that JSON cannot represent."""
    return indented_json(document) + "\n"


def _fidelity(recording: Recording) -> FidelitySummary:
    fidelity = recording.fidelity
    summary = FidelitySummary(
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
        summary["late_p50_wall_ns"] = round(fidelity.late_p50_ns * recording.slowdown)
        summary["late_p99_wall_ns"] = round(fidelity.late_p99_ns * recording.slowdown)
        summary["late_max_wall_ns"] = round(fidelity.late_max_ns * recording.slowdown)
    return summary


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
        retransmitted_packets=flow.retransmitted_packets,
        completed=bool(flow.completed),
        delivered_bytes=None if flow.delivered_bytes is None else int(flow.delivered_bytes),
        observed_until_ns=None if flow.observed_until_ns is None else int(flow.observed_until_ns),
    )


def _prompts(figures: PromptFigures) -> PromptSummary:
    ttft, transfer, wait = (
        cast(LatencySummary, asdict(latency))
        for latency in (figures.ttft, figures.transfer, figures.wait)
    )
    return PromptSummary(
        traffic=figures.traffic,
        ttft=ttft,
        kv_transfer=transfer,
        kv_wait=wait,
        kv_wait_share_p50=figures.share_p50,
        kv_wait_share_p99=figures.share_p99,
        kv_wait_share_max=figures.share_max,
        ttft_mark_ns=TTFT_MARK_NS,
        kv_wait_mark_ns=KV_WAIT_MARK_NS,
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
