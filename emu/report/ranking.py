"""Ranks fabrics for a traffic entry, by a measure that fits the kind of traffic.

    open-loop load      arrivals do not depend on the fabric   FCT slowdown, 99 % of messages
    paced messages      one message per interval               their latency, 99 %
    jobs                collectives, training steps            the time of one iteration
    storage for a time  I/Os, one after another                IOPS
    inference           prompts that arrive at random          TTFT, 99 % of prompts
    everything else     a fixed number of bytes                completion of the last flow

The last completion of an open-loop load is that of a large message that arrived late, and says
nothing about the fabric. A fabric that did not finish is named, but not ranked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from emu.measure.fct import Bucket, FctSlowdown
from emu.measure.records import JobRecord, StepRecord
from emu.measure.requests import latencies
from emu.report.run_view import RunFacts, last_finish_ns
from emu.spec.traffic.entry import MessageEntry
from emu.spec.traffic.inference import Inference
from emu.units import format_time_ns

ALIKE = 0.02
"""Results that differ by no more than this part are called alike."""


@dataclass(frozen=True)
class Measure:
    """A measure. `of` returns its value for a traffic entry of a run, or None if there is none."""

    by: str
    of: Callable[[RunFacts, str], float | None]
    write: Callable[[float], str]
    more_is_better: bool = False


@dataclass(frozen=True)
class Ranking:
    """`ranked`: the runs that finished the entry, the best first, with their values."""

    traffic: str
    measure: Measure
    ranked: tuple[tuple[float, RunFacts], ...]
    unfinished: tuple[RunFacts, ...]

    @property
    def best(self) -> tuple[tuple[float, RunFacts], ...]:
        """The first run, and those whose results are alike."""
        first = self.ranked[0][0]
        if self.measure.more_is_better:
            return tuple(one for one in self.ranked if one[0] * (1 + ALIKE) >= first)
        return tuple(one for one in self.ranked if one[0] <= first * (1 + ALIKE))


def ranking(runs: Sequence[RunFacts], traffic: str) -> Ranking:
    """The ranking of the runs that have this traffic entry."""
    own = [run for run in runs if traffic in run.traffic]
    kinds = [measure_for(run, traffic) for run in own]
    measure = kinds[0] if all(kind is kinds[0] for kind in kinds) else BY_COMPLETION
    values = [(run, measure.of(run, traffic)) for run in own]
    done = [(value, run) for run, value in values if value is not None and is_over(run, traffic)]
    done.sort(key=lambda one: -one[0] if measure.more_is_better else one[0])
    names = {run.name for _, run in done}
    return Ranking(
        traffic, measure, tuple(done), tuple(run for run in own if run.name not in names)
    )


def is_over(run: RunFacts, traffic: str) -> bool:
    """Whether all of the entry's flows have finished."""
    return all(flow.completed for flow in run.traffic[traffic])


def measure_for(run: RunFacts, traffic: str) -> Measure:
    """The measure for this kind of traffic."""
    if _fct(run, traffic) is not None:
        return BY_FCT
    if _iterations(run, traffic):
        return BY_ITERATION
    if traffic in run.storage and traffic in run.spec.workload().cut_short:
        return BY_IOPS
    entries = {entry.name: entry for entry in run.spec.traffic}
    entry = entries.get(traffic)
    if isinstance(entry, Inference):
        return BY_TTFT
    if isinstance(entry, MessageEntry) and entry.every_ps:
        return BY_LATENCY
    return BY_COMPLETION


def _fct(run: RunFacts, traffic: str) -> FctSlowdown | None:
    return next((own for own in run.fct_slowdowns if own.traffic == traffic), None)


def _fct_p99(run: RunFacts, traffic: str) -> float | None:
    found = _fct(run, traffic)
    return found.whole.p99 if found else None


def _iteration_ns(run: RunFacts, traffic: str) -> float | None:
    own = _iterations(run, traffic)
    return own[0].took_ns if own else None


def _iterations(run: RunFacts, traffic: str) -> list[StepRecord | JobRecord]:
    """The training steps and jobs of an entry. Steps come first, because collectives are parts of
    them."""
    return [
        *(step for step in run.recording.steps if step.name == traffic),
        *(job for job in run.recording.jobs if job.name == traffic),
    ]


def _iops(run: RunFacts, traffic: str) -> float | None:
    own = [figures.iops for figures in run.ios if figures.latency.traffic == traffic]
    known = [iops for iops in own if iops is not None]
    return sum(known) if known else None


def _latency_ns(run: RunFacts, traffic: str) -> float | None:
    found = [own for own in latencies(run.recording.requests) if own.traffic == traffic]
    return found[0].p99_ns if found else None


BY_FCT = Measure("FCT slowdown, 99 % of messages", _fct_p99, lambda times: f"{times:,.2f}")
BY_ITERATION = Measure("iteration time", _iteration_ns, format_time_ns)
BY_IOPS = Measure("IOPS", _iops, lambda iops: f"{iops:,.0f}", more_is_better=True)
BY_LATENCY = Measure("latency, 99 % of messages", _latency_ns, format_time_ns)
BY_TTFT = Measure("TTFT, 99 % of prompts", _latency_ns, format_time_ns)
BY_COMPLETION = Measure(
    "completion of the last flow",
    lambda run, traffic: last_finish_ns(run.traffic[traffic]),
    format_time_ns,
)


@dataclass(frozen=True)
class SizeRank:
    """The best run for the smallest, or the largest, tenth of a load's messages."""

    which: str
    up_to_bytes: int
    run: RunFacts
    p50: float
    p99: float
    finished: int
    """The number of messages in p50 and p99."""


def by_size(own: Ranking) -> tuple[SizeRank, ...]:
    """The best runs by message size, for an open-loop load with several sizes; empty for other
    traffic."""
    if own.measure is not BY_FCT:
        return ()
    found = [(run, _fct(run, own.traffic)) for _, run in own.ranked]
    buckets = [(run, slowdown.buckets) for run, slowdown in found if slowdown]
    if len({tuple(b.up_to_bytes for b in of_run) for _, of_run in buckets}) != 1:
        return ()
    if len(buckets) < 2 or len(buckets[0][1]) < 2:
        return ()
    return tuple(
        rank
        for which, place in (("smallest", 0), ("largest", -1))
        for rank in [_least(which, [(run, of_run[place]) for run, of_run in buckets])]
        if rank is not None
    )


def _least(which: str, buckets: Iterable[tuple[RunFacts, Bucket]]) -> SizeRank | None:
    ranks = [
        SizeRank(which, own.up_to_bytes, run, own.p50, own.p99, own.finished)
        for run, own in buckets
        if own.p50 is not None and own.p99 is not None
    ]
    return min(ranks, key=lambda rank: rank.p99, default=None)
