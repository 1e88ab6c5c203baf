"""Interference: what groups of traffic cost each other. A group is an entry of `traffic:`.

    JCT interference factor = JCT with all groups / JCT of the group alone      (training draft)
    contention penalty      = P99 with all groups / P99 of the group alone      (inference draft)

The group alone is a run of the same spec and seed without the other entries. The training draft
asks for jobs that share 0, 25, 50 and 75 % of the spine links: here they share those that the
spec's hosts and routes give them.
"""

from __future__ import annotations

from emu.bmwg.kpi import INFER, TRAIN, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.latency import latencies_ns
from emu.bmwg.trial import Trial, works
from emu.measure.percentile import percentile
from emu.report.run_view import RunFacts
from emu.units import format_time_ns

FACTOR = Kpi(
    "jct_interference",
    "JCT interference factor",
    Table.INTERFERENCE,
    Unit.RATIO,
    "JCT with all groups of traffic / JCT of the group alone.",
    TRAIN,
)
PENALTY = Kpi(
    "contention_penalty",
    "contention penalty",
    Table.INTERFERENCE,
    Unit.RATIO,
    "P99 of a group's latencies with all groups / alone.",
    INFER,
)
KPIS = (FACTOR, PENALTY)


def measured(trial: Trial) -> Measured:
    """Both figures, of each entry."""
    why_not = _why_not(trial)
    if why_not:
        yield from (Undefined(kpi, why_not) for kpi in KPIS)
        return
    for name, alone in trial.alone.items():
        yield _factor(name, trial.run, alone)
        yield _penalty(name, trial.run, alone)


def _why_not(trial: Trial) -> str:
    if len(trial.run.entries) < 2:
        return "the spec has one group of traffic (entry of traffic:)"
    return "" if trial.alone else "ask for it with --interference"


def _factor(name: str, together: RunFacts, alone: RunFacts) -> Figure | Undefined:
    return _ratio(FACTOR, name, _jct_ns(together, name), _jct_ns(alone, name))


def _jct_ns(run: RunFacts, name: str) -> float | None:
    return next((work.took_ns for work in works(run) if work.name == name), None)


def _penalty(name: str, together: RunFacts, alone: RunFacts) -> Figure | Undefined:
    return _ratio(PENALTY, name, _p99_ns(together, name), _p99_ns(alone, name))


def _p99_ns(run: RunFacts, name: str) -> float | None:
    took_ns, _ = latencies_ns(run, name)
    return percentile(took_ns, 0.99) if len(took_ns) else None


def _ratio(kpi: Kpi, name: str, with_all: float | None, alone: float | None) -> Figure | Undefined:
    if with_all is None or alone is None:
        what = "finished job" if kpi is FACTOR else "messages with times of their own"
        return Undefined(kpi, f"it has no {what}", name)
    inputs = f"{format_time_ns(with_all)}, alone {format_time_ns(alone)}"
    return Figure(kpi, with_all / alone, name, inputs)
