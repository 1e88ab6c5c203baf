"""The figures of a run as plain numbers, for tables over many runs.

of        what       unit    column
          last completion  ns   last_completion_ns
incast    median goodput   bps  incast.median_goodput_bps
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emu.report.run_view import RunFacts, last_finish_ns
from emu.units import format_rate, format_size, format_time_ns

_MORE_IS_BETTER = ("bps", "iops")


@dataclass(frozen=True)
class RunFigure:
    """One figure of a run. None: a flow did not finish, or the model does not know it."""

    what: str
    unit: str
    """`ns` of emulated time, `bps`, `bytes`, `iops` or `times`; empty for a count."""
    value: float | None
    of: str = ""
    """The entry of `traffic:` that it is about; empty for the whole fabric."""

    @property
    def name(self) -> str:
        """`incast: last completion`."""
        return f"{self.of}: {self.what}" if self.of else self.what

    @property
    def column(self) -> str:
        """`incast.last_completion_ns`: its name in tables of numbers."""
        words = self.what.replace(" ", "_")
        ending = "" if self.unit in ("", "times") or words.endswith(self.unit) else f"_{self.unit}"
        return f"{self.of}.{words}{ending}" if self.of else f"{words}{ending}"


def unit_of(column: str) -> str:
    """The unit in which a column's numbers are; empty for counts."""
    last = column.rsplit("_", 1)[-1]
    if column.endswith("iops"):
        return "iops"
    return last if last in ("ns", "bps", "bytes") else ""


def more_is_better(column: str) -> bool:
    """Whether a larger number is better: rates. Times, queues and counts are better when small."""
    return unit_of(column) in _MORE_IS_BETTER


def written(value: float, unit: str) -> str:
    """A figure for people: `1.129 ms`."""
    if unit == "ns":
        return format_time_ns(value)
    if unit == "bps":
        return format_rate(value)
    if unit == "bytes":
        return format_size(value)
    return f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:.4g}"


def run_figures(run: RunFacts) -> Iterator[RunFigure]:
    """All figures of the run."""
    yield RunFigure("last completion", "ns", run.last_finish_ns)
    yield RunFigure("unfinished flows", "", len(run.unfinished))
    yield from _counts(run)
    for name, flows in run.traffic.items():
        yield RunFigure("last completion", "ns", last_finish_ns(flows), name)
        yield RunFigure("median goodput", "bps", round(run.median_goodput_bps(name)), name)
    for latency in run.latencies:
        yield RunFigure("latency p50", "ns", latency.p50_ns, latency.traffic)
        yield RunFigure("latency p99", "ns", latency.p99_ns, latency.traffic)
    for own in run.ios:
        name = own.latency.traffic
        yield RunFigure(f"{own.way} iops", "iops", own.iops, name)
        yield RunFigure(f"{own.way} latency p50", "ns", own.latency.p50_ns, name)
        yield RunFigure(f"{own.way} latency p99", "ns", own.latency.p99_ns, name)
    for prompts in run.prompts:
        yield RunFigure("ttft p50", "ns", prompts.ttft.p50_ns, prompts.traffic)
        yield RunFigure("ttft p99", "ns", prompts.ttft.p99_ns, prompts.traffic)
        yield RunFigure("kv transfer p99", "ns", prompts.transfer.p99_ns, prompts.traffic)
        yield RunFigure("kv wait p50", "ns", prompts.wait.p50_ns, prompts.traffic)
        yield RunFigure("kv wait p99", "ns", prompts.wait.p99_ns, prompts.traffic)
        yield RunFigure("kv wait share p99", "times", prompts.share_p99, prompts.traffic)
    for slowdown in run.fct_slowdowns:
        yield RunFigure("fct slowdown p50", "times", slowdown.whole.p50, slowdown.traffic)
        yield RunFigure("fct slowdown p99", "times", slowdown.whole.p99, slowdown.traffic)
    for job in run.recording.jobs:
        rate = job.busbw_bytes_per_s
        yield RunFigure("busbw", "bps", None if rate is None else round(rate * 8), job.name)
        yield RunFigure("iteration", "ns", job.took_ns, job.name)
    for step in run.recording.steps:
        yield RunFigure("step", "ns", step.took_ns, step.name)
        yield RunFigure("exposed communication", "ns", step.exposed_ns, step.name)


def _counts(run: RunFacts) -> Iterator[RunFigure]:
    """Counters of the fabric, and its deepest queue."""
    counts = {
        "failed queue pairs": len(run.recording.failed_queue_pairs),
        "dropped packets": run.drops,
        **{name.replace("_", " "): run.total(name) for name in _TOTALS},
    }
    for what, count in counts.items():
        yield RunFigure(what, "", count if run.has_packets else None)
    queues = run.recording.series.queue_bytes
    deepest = int(queues.max()) if run.has_packets and queues.size else None
    yield RunFigure("deepest queue", "bytes", deepest)
    yield RunFigure("credit wait", "ns", run.total("credit_wait_ns") if run.has_packets else None)
    yield RunFigure("paused", "ns", run.total("paused_ns") if run.has_packets else None)


_TOTALS = ("retransmitted_packets", "pause_frames", "ce_marked", "cnp")
