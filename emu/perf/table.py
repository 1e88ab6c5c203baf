"""Figures in the columns that perftest prints, for scripts that read those."""

from __future__ import annotations

from emu.perf.figures import Bandwidth, Latency

BANDWIDTH = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
LATENCY = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]"
    "    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]"
)
RULE = "-" * 87


def header(*, is_latency: bool) -> str:
    return LATENCY if is_latency else BANDWIDTH


def line(figures: Bandwidth | Latency) -> str:
    """One size."""
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
