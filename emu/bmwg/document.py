"""A benchmark report as one JSON document, with all raw figures. `emu schema bench-report` prints
its schema. Schema 1 only gains keys.

Times are emulated nanoseconds, rates bits or bytes per second, sizes bytes; `unit` of each figure
says which. A KPI without a value is in `undefined`, and not in `figures`.
"""

from __future__ import annotations

from typing_extensions import TypedDict  # of which pydantic makes a schema on Python 3.11

import emu
from emu.bmwg import dut
from emu.bmwg.catalogue import KPIS
from emu.bmwg.conditions import WANTED_TRIAL_NS, anomalies, deviations
from emu.bmwg.iterations import Bench, Iteration, Missing, Statistic
from emu.bmwg.kpi import DRAFTS, Kpi
from emu.bmwg.settings import host_settings, switch_settings
from emu.explain.in_force import Value
from emu.measure.bootstrap import LEVEL, METHOD, RESAMPLES

BENCH_SCHEMA = "emu.bench-report/1"


class KpiEntry(TypedDict):
    """What a KPI is."""

    key: str
    """The name that figures refer to."""
    name: str
    """The name in tables."""
    table: str
    """The table of the report that it belongs to."""
    unit: str
    """`ns`, `bytes`, `bytes/s`, `bit/s`, `ratio`, `%`, `ppm`, `1/s` or `count`."""
    definition: str
    """Its formula or definition."""
    source: str
    """The draft that defines it."""
    reference: float | None
    """The draft's reference target, which is not normative; null if there is none."""


class FigureEntry(TypedDict):
    """A figure over all iterations."""

    kpi: str
    """Key of the KPI."""
    of: str
    """A traffic entry, a port, a priority of a port, a switch or a fault; empty for the fabric."""
    unit: str
    """The unit of the KPI."""
    values: dict[str, float]
    """The figure of each iteration, by seed."""
    mean: float
    """The mean over the iterations."""
    low: float | None
    """Low end of the mean's interval; null for one iteration."""
    high: float | None
    """High end of the mean's interval; null for one iteration."""
    cv: float | None
    """Coefficient of variation, as a part of 1; null for one iteration, and around 0."""
    mark: str | None
    """The reference target that the mean keeps or misses, in words; null if there is none."""
    detail: str
    """What the figure of the first iteration was computed from."""


class UndefinedEntry(TypedDict):
    """A KPI without a value."""

    kpi: str
    """Key of the KPI."""
    of: str
    """What it would be of; empty for the fabric."""
    reason: str
    """Why it is not defined."""
    seeds: list[int]
    """The iterations that do not define it."""


class SettingEntry(TypedDict):
    """A setting in effect."""

    key: str
    """The key of a spec."""
    where: str
    """The switches, ports or hosts; empty for keys of the whole spec."""
    value: str
    """The value, as a spec has it."""
    origin: str
    """Whether it is given, derived or a default."""


class IterationEntry(TypedDict):
    """A trial."""

    seed: int
    """Its seed."""
    duration_ns: int
    """Emulated time from the first start to the last finish."""
    conclusive: bool
    """Whether the machine kept up. If not, the iteration has no figures."""
    anomalies: list[str]
    """What went wrong: diagnoses, unfinished flows, failed checks."""


class BenchReport(TypedDict):
    """The benchmark of one spec."""

    schema: str
    """Name and version of this document's format."""
    name: str
    """Name of the spec."""
    version: str
    """Version of emu."""
    drafts: list[str]
    """The Internet-Drafts that define the KPIs."""
    fabric: str
    """`roce` or `ib`."""
    in_scope: bool
    """Whether the drafts cover this kind of fabric. They leave InfiniBand out."""
    dut: dict[str, str]
    """Identification of the device under test: parameter -> value."""
    workload: list[dict[str, str]]
    """The entries of `traffic:`, in words."""
    settings: list[SettingEntry]
    """All settings of switches and hosts that are in effect."""
    wanted_trial_ns: int
    """The least duration of a trial in the drafts."""
    iterations: list[IterationEntry]
    """The trials, one for each seed."""
    method: str
    """How intervals of means are computed."""
    resamples: int
    """The number of resamples of the bootstrap."""
    level: float
    """The level of the intervals."""
    kpis: list[KpiEntry]
    """Every KPI, defined or not."""
    figures: list[FigureEntry]
    """The figures."""
    undefined: list[UndefinedEntry]
    """The KPIs without a value, and why."""
    anomalies: dict[str, list[int]]
    """What went wrong -> the seeds of the iterations."""
    deviations: list[str]
    """Where the benchmark deviates from the drafts' procedures, in sentences."""


def document(bench: Bench) -> BenchReport:
    """The whole report."""
    run = bench.first.run
    return BenchReport(
        schema=BENCH_SCHEMA,
        name=bench.name,
        version=emu.__version__,
        drafts=list(DRAFTS),
        fabric=run.recording.fabric,
        in_scope=run.recording.fabric_kind.is_ethernet,
        dut=dut.identification(run),
        workload=dut.workload(run),
        settings=[_setting(own) for own in (*switch_settings(run.spec), *host_settings(run.spec))],
        wanted_trial_ns=WANTED_TRIAL_NS,
        iterations=[_iteration(one) for one in bench.iterations],
        method=METHOD,
        resamples=RESAMPLES,
        level=LEVEL,
        kpis=[_kpi(kpi) for kpi in KPIS.values()],
        figures=[_figure(one) for one in bench.statistics],
        undefined=[_undefined(one) for one in bench.missing],
        anomalies=anomalies(bench),
        deviations=list(deviations(bench)),
    )


def _kpi(kpi: Kpi) -> KpiEntry:
    return KpiEntry(
        key=kpi.key,
        name=kpi.name,
        table=kpi.table.value,
        unit=kpi.unit.value,
        definition=kpi.definition,
        source=kpi.source,
        reference=None if kpi.target is None else float(kpi.target.best),
    )


def _figure(one: Statistic) -> FigureEntry:
    found, target = one.interval, one.kpi.target
    return FigureEntry(
        kpi=one.kpi.key,
        of=one.of,
        unit=one.kpi.unit.value,
        values={str(seed): float(value) for seed, value in one.values.items()},
        mean=found.mean,
        low=found.low,
        high=found.high,
        cv=one.cv,
        mark=None if target is None else target.mark(found.mean, one.kpi.unit.write),
        detail=one.detail,
    )


def _undefined(one: Missing) -> UndefinedEntry:
    return UndefinedEntry(kpi=one.kpi.key, of=one.of, reason=one.reason, seeds=list(one.seeds))


def _setting(own: Value) -> SettingEntry:
    return SettingEntry(key=own.key, where=own.where, value=own.value, origin=own.origin)


def _iteration(one: Iteration) -> IterationEntry:
    return IterationEntry(
        seed=one.seed,
        duration_ns=one.duration_ns,
        conclusive=one.conclusive,
        anomalies=list(one.anomalies),
    )
