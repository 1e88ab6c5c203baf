"""A sweep of collectives in the format of nccl-tests, so that scripts for nccl-tests can read it.

    #                                                     out-of-place                    in-place
    #  size      count   type  redop   root    time   algbw   busbw #wrong    time   algbw ...
         8          2   float    sum     -1   13.54    0.00    0.00      0   13.54    0.00 ...

Sizes are in bytes, counts in elements of a rank, times in microseconds, bandwidths in GB/s. The
emulated GPUs copy nothing, so in-place and out-of-place operations take the same time, and each
measurement stands in both halves. `#wrong` is N/A when values were not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

from emu.measure.records import JobRecord
from emu.report.nccl_channels import Channels, numbers_in
from traffic.collectives.channels import Servers
from traffic.job import FLOAT_BYTES

SCHEMA = "emu-nccl/1"
_NOT_AVAILABLE = "N/A"
_TIME_WIDTH = 7
_PIECES = ("all-gather", "reduce-scatter", "all-to-all")
"""For these collectives, `count` is the number of elements in one rank's piece."""
_SUMS = ("all-reduce", "reduce-scatter")


@dataclass(frozen=True)
class Sweep:
    """The description of a sweep, which stands above the table."""

    hosts: Sequence[str]
    """The host of each rank."""
    servers: Servers
    device: str
    first_bytes: int
    last_bytes: int
    step: str
    """The step between sizes as nccl-tests writes it: `2(factor)`, `1048576(bytes)`."""
    validates: bool
    notes: Sequence[str] = ()
    """Choices that were made automatically, and which channel uses which NIC."""


def heading(sweep: Sweep) -> Iterator[str]:
    """The lines above the measurements."""
    yield (
        f"# nThread 1 nGpus {len(sweep.hosts)} minBytes {sweep.first_bytes} "
        f"maxBytes {sweep.last_bytes} step: {sweep.step} warmup iters: 0 iters: 1 "
        f"agg iters: 1 validation: {int(sweep.validates)} graph: 0"
    )
    yield "#"
    yield "# Using devices"
    number = numbers_in(sweep.servers)
    for rank, host in enumerate(sweep.hosts):
        yield (
            f"#  Rank {rank:2d} Group  0 Pid {rank + 1:6d} on {host:>10} "
            f"device {number[rank]:2d} [0x00] {sweep.device}"
        )
    yield "#"
    for note in sweep.notes:
        yield f"# {note}"
    if sweep.notes:
        yield "#"
    yield f"# {'':54}  {'out-of-place':^31} {'in-place':^32}"
    half = f"{'time':>7}  {'algbw':>6}  {'busbw':>6} {'#wrong':>6}"
    names = f"{'size':>10}  {'count':>12}  {'type':>8}  {'redop':>6}  {'root':>6}"
    yield f"# {names}  {half}  {half}"
    units = f"{'(us)':>7}  {'(GB/s)':>6}  {'(GB/s)':>6} {'':>6}"
    yield f"# {'(B)':>10}  {'(elements)':>12}  {'':>8}  {'':>6}  {'':>6}  {units}  {units}"


def row(job: JobRecord, root: int) -> str:
    """One measurement."""
    pieces = job.ranks if job.collective in _PIECES else 1
    redop = "sum" if job.collective in _SUMS else "none"
    rooted = root if job.collective == "broadcast" else -1
    count = job.bytes // pieces // FLOAT_BYTES
    half = _half(job)
    return f"{job.bytes:12d}  {count:12d}  {'float':>8}  {redop:>6}  {rooted:>6}  {half}  {half}"


def _half(job: JobRecord) -> str:
    algbw, busbw = job.algbw_bytes_per_s, job.busbw_bytes_per_s
    if job.took_ns is None or algbw is None or busbw is None:
        return f"{_NOT_AVAILABLE:>7}  {_NOT_AVAILABLE:>6}  {_NOT_AVAILABLE:>6} {_NOT_AVAILABLE:>6}"
    wrong = _NOT_AVAILABLE if job.wrong is None else str(job.wrong)
    return f"{_time(job.took_ns / 1000)}  {algbw / 1e9:6.2f}  {busbw / 1e9:6.2f} {wrong:>6}"


def _time(us: float) -> str:
    """The time in seven characters, with at most two decimals."""
    digits = 2 if us < 10_000 else 1 if us < 100_000 else 0
    return f"{us:{_TIME_WIDTH}.{digits}f}"


def closing(jobs: Sequence[JobRecord]) -> Iterator[str]:
    """The lines below the measurements."""
    wrong = sum(job.wrong or 0 for job in jobs)
    rates = [job.busbw_bytes_per_s for job in jobs if job.busbw_bytes_per_s is not None]
    yield f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"
    yield f"# Avg bus bandwidth    : {_mean_rate(rates)}"
    yield "#"


def _mean_rate(rates: Sequence[float]) -> str:
    return f"{mean(rates) / 1e9:g}" if rates else _NOT_AVAILABLE


def to_mapping(
    collective: str,
    hosts: Sequence[str],
    used: Sequence[Channels],
    jobs: Sequence[JobRecord],
    wrong: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """The sweep for programs: the same figures under nccl-tests' names, with their units.

    `collective`: its name in nccl-tests. A channel's connections are between ranks, as in NCCL.
    `wrong`: for each job, sentences about what went wrong in the fabric.
    """
    rates = [job.busbw_bytes_per_s for job in jobs if job.busbw_bytes_per_s is not None]
    return {
        "schema": SCHEMA,
        "collective": collective,
        "ranks": list(hosts),
        "channels": {
            channels.algorithm: {
                "count": channels.count,
                "rings": channels.rings,
                "trees": channels.trees,
                "connections": [asdict(one) for one in channels.connections],
            }
            for channels in used
        },
        "results": [
            _figures(job) | {"diagnoses": list(sentences)}
            for job, sentences in zip(jobs, wrong, strict=True)
        ],
        "out_of_bounds_values": sum(job.wrong or 0 for job in jobs),
        "avg_busbw_gb_per_s": mean(rates) / 1e9 if rates else None,
    }


def _figures(job: JobRecord) -> dict[str, Any]:
    algbw, busbw = job.algbw_bytes_per_s, job.busbw_bytes_per_s
    return {
        "size_bytes": job.bytes,
        "algorithm": job.algorithm,
        "time_us": None if job.took_ns is None else job.took_ns / 1000,
        "algbw_gb_per_s": None if algbw is None else algbw / 1e9,
        "busbw_gb_per_s": None if busbw is None else busbw / 1e9,
        "wrong": job.wrong,
    }
