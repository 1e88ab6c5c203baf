"""Job completion time, its roofline, and their ratio.

    roofline JCT = iterations x (C + S x factor / NIC rate)      (training draft)
    JCT ratio    = measured JCT / roofline JCT

C is the computation of an iteration and S x factor the bytes that one rank sends. The terminology
draft has C + S / link rate, without the factor; the training draft's formula is used here. A trial
has one iteration of each job.

    a collective   C = 0, S its size as nccl-tests counts it, factor 2(n-1)/n or (n-1)/n
    a step         C the step's computation alone; for S x factor the bytes that the busiest NIC
                   sends or receives: a step has several collectives, and ranks may differ

The ratio may be below 1. The formula lets communication begin after all computation, and a step
may do both at once. It lets all bytes cross the NICs, and GPUs of one server have faster links.
"""

from __future__ import annotations

from collections import defaultdict

from emu.bmwg.kpi import TRAIN, Figure, Kpi, Measured, Table, Target, Undefined, Unit
from emu.bmwg.trial import Trial, works
from emu.measure.records import JobRecord, StepRecord
from emu.report.run_view import RunFacts
from emu.spec.traffic.collectives import Collective
from emu.units import format_rate, format_size, format_time_ns

JCT = Kpi(
    "jct",
    "job completion time (JCT)",
    Table.PRIMARY,
    Unit.NS,
    "Time of one iteration of a job, computation and communication.",
    TRAIN,
)
ROOFLINE = Kpi(
    "roofline_jct",
    "roofline JCT",
    Table.PRIMARY,
    Unit.NS,
    "iterations x (C + S x factor / NIC rate): the JCT on a network without contention.",
    TRAIN,
)
RATIO = Kpi(
    "jct_ratio",
    "JCT ratio",
    Table.PRIMARY,
    Unit.RATIO,
    "JCT / roofline JCT.",
    TRAIN,
    target=Target(1.05, acceptable=1.15),
)
KPIS = (JCT, ROOFLINE, RATIO)
_NO_JOB = "it is no collective and no step, so it has no computation and no roofline"


def roofline_ns(work_ns: float, sent_bytes: float, rate_bps: int, iterations: int = 1) -> float:
    """The roofline JCT. `sent_bytes` is S x factor, of one rank."""
    return iterations * (work_ns + sent_bytes * 8e9 / rate_bps)


def measured(trial: Trial) -> Measured:
    """JCT, roofline and ratio of each job."""
    run = trial.run
    for work in works(run):
        yield from _of_job(run, work)
    jobs = {work.name for work in works(run)}
    for name in run.entries:
        if name not in jobs:
            yield from (Undefined(kpi, _NO_JOB, name) for kpi in KPIS)


def _of_job(run: RunFacts, work: JobRecord | StepRecord) -> Measured:
    if isinstance(work, JobRecord):
        work_ns, sent_bytes, rate_bps, sent = _of_collective(run, work)
    else:
        work_ns, sent_bytes, rate_bps, sent = _of_step(run, work)
    roofline = roofline_ns(work_ns, sent_bytes, rate_bps)
    inputs = f"C {format_time_ns(work_ns)}, {sent}, NIC {format_rate(rate_bps)}, 1 iteration"
    yield Figure(ROOFLINE, roofline, work.name, inputs)
    if work.took_ns is None:
        yield from (Undefined(kpi, "it did not finish", work.name) for kpi in (JCT, RATIO))
        return
    yield Figure(JCT, work.took_ns, work.name)
    yield Figure(RATIO, work.took_ns / roofline, work.name, _below_one(run, work, roofline))


def _of_collective(run: RunFacts, job: JobRecord) -> tuple[int, float, int, str]:
    """C, S x factor and the NIC rate, and S x factor in words."""
    sent = f"S {format_size(job.bytes)}, factor {job.bus_factor:.4g}"
    return 0, job.bytes * job.bus_factor, nic_rate_bps(run, job), sent


def nic_rate_bps(run: RunFacts, job: JobRecord) -> int:
    """The rate of the slowest NIC among a collective's ranks."""
    entry = run.entries[job.name]
    assert isinstance(entry, Collective)
    return min(rate_of_host(run, rank) for rank in entry.job.ranks)


def rate_of_host(run: RunFacts, host: str) -> int:
    """Bits per second of the cable in a host's NIC."""
    return run.topology.cable[run.topology.ports[host][0]].rate_bps


def _of_step(run: RunFacts, step: StepRecord) -> tuple[int, float, int, str]:
    """The same of a step, whose busiest NIC has the most bytes for its rate in one direction."""
    moved: dict[tuple[str, str], int] = defaultdict(int)
    for flow in run.traffic.get(step.name, ()):
        if not run.spec.in_one_server(flow.src, flow.dst):
            moved[flow.bytes_from, "sends"] += flow.bytes
            moved[flow.bytes_to, "receives"] += flow.bytes
    if not moved:
        rate_bps = min(rate_of_host(run, host) for host in run.topology.host)
        return step.work_alone_ns, 0, rate_bps, "no bytes cross a NIC"
    busiest = max(moved, key=lambda nic: moved[nic] / rate_of_host(run, nic[0]))
    host, does = busiest
    sent = f"{host} {does} {format_size(moved[busiest])}"
    return step.work_alone_ns, moved[busiest], rate_of_host(run, host), sent


def _below_one(run: RunFacts, work: JobRecord | StepRecord, roofline: float) -> str:
    """Why a ratio may be below 1; empty if it is not."""
    if work.took_ns is None or work.took_ns >= roofline:
        return ""
    if isinstance(work, StepRecord):
        return "below 1: communication overlaps with computation, which the roofline leaves out"
    if run.spec.scale_up is not None:
        return "below 1: bytes inside of servers cross no NIC, which the roofline leaves out"
    return "below 1: the algorithm sends fewer bytes over a NIC than S x factor"
