"""Writes figures in perftest's format, for scripts that read it.

Above the columns, perftest lists its settings. Only the lines that apply to an emulated NIC are
written; lines about PCIe, inline data, the CQ and the connection of the ends are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.perf.benchmark import Benchmark, Ends
from emu.perf.document import Bandwidth, Latency
from emu.spec.model import Spec
from traffic.verb import Verb

BANDWIDTH = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
LATENCY = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]"
    "    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]"
)
RULE = "-" * 87


_TITLES = {
    Verb.SEND: "Send",
    Verb.WRITE: "RDMA_Write",
    Verb.READ: "RDMA_Read",
    Verb.FETCH_ADD: "Atomic FETCH_AND_ADD",
}


def settings_lines(benchmark: Benchmark, fabric: Spec, ends: Ends) -> Iterator[str]:
    """The lines above the columns: the test and its settings."""
    nics = [fabric.host(host).nic for host in (ends.src, ends.dst)]
    figure = "Latency" if benchmark.is_latency else "BW"
    yield RULE
    yield f"{'':20}{_TITLES[benchmark.verb]} {figure} Test"
    yield " Dual-port       : OFF\t\tDevice         : " + ends.src
    yield " Number of qps   : 1\t\tTransport type : IB"
    yield f" Connection type : {benchmark.transport.upper()}\t\tUsing SRQ      : OFF"
    if not benchmark.is_latency:
        yield f" TX depth        : {benchmark.depth}"
    yield f" Mtu             : {min(nic.mtu for nic in nics)}[B]"
    yield f" Link type       : {'Ethernet' if fabric.fabric_kind.is_ethernet else 'IB'}"
    if benchmark.verb.fetches:
        yield f" Outstand reads  : {min(nic.max_rd_atomic for nic in nics)}"
    yield RULE
    yield f" local address: {ends.src}"
    yield f" remote address: {ends.dst}"
    yield RULE


def header(*, is_latency: bool) -> str:
    return LATENCY if is_latency else BANDWIDTH


def line(figures: Bandwidth | Latency) -> str:
    """The line of one message size."""
    if isinstance(figures, Bandwidth):
        return (
            f" {figures.size_bytes:<10} {figures.iterations:<14} {figures.peak_gbps:<18.2f} "
            f"{figures.average_gbps:<20.2f} {figures.message_rate_mpps:.6f}"
        )
    times = (
        figures.t_min,
        figures.t_max,
        figures.t_typical,
        figures.t_avg,
        figures.t_stdev,
        figures.p99,
        figures.p999,
    )
    widths = (14, 14, 16, 14, 16, 22, 0)
    columns = "".join(f" {time:<{width}.3f}" for time, width in zip(times, widths, strict=True))
    return f" {figures.size_bytes:<6} {figures.iterations:<13}{columns}"
