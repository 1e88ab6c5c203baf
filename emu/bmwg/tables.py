"""The tables of the report, for the terminal and for the page.

Figures are in these tables:

    primary, secondary, health, failover, interference   a row for each figure of a KPI
    latency                                              a row for each traffic entry
    KPI by port, priority or switch                      a row for each place, the highest first
    KPIs without a value                                 a row for each reason

The others have what the drafts' reports must hold besides: device under test, workload, settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emu.bmwg import dut, latency
from emu.bmwg.catalogue import KPIS
from emu.bmwg.conditions import seeds_in_words
from emu.bmwg.iterations import RECOMMENDED_CV, Bench, Statistic
from emu.bmwg.kpi import Kpi
from emu.bmwg.kpi import Table as Kind
from emu.bmwg.settings import host_settings, switch_settings
from emu.explain.in_force import Value
from emu.measure.percentile import DEFINITION
from emu.report.table import NOT_APPLICABLE, Cell, Column, Table, Tone
from emu.words import listed, shortened

_MOST_NAMED = 6


def result_tables(bench: Bench) -> Iterator[Table]:
    """The tables of the drafts' tiers and tests."""
    for kind in (Kind.PRIMARY, Kind.SECONDARY):
        yield _of_kind(bench, kind)
    yield _latencies(bench)
    for kind in (Kind.HEALTH, Kind.FAILOVER, Kind.INTERFERENCE):
        yield _of_kind(bench, kind)


def place_tables(bench: Bench, most: int) -> Iterator[Table]:
    """The figures by port, priority or switch, of each KPI that has them; `most` rows each."""
    for kpi in KPIS.values():
        if kpi.by:
            yield _by_place(bench, kpi, most)


def _of_kind(bench: Bench, kind: Kind) -> Table:
    own = [one for one in bench.statistics if one.kpi.table is kind and not _is_by_place(one)]
    several = len(bench.conclusive) > 1
    marked = any(one.kpi.target for one in own)
    return Table(
        title=kind.value,
        columns=(
            Column("KPI", numeric=False),
            Column("of", numeric=False),
            Column("measured"),
            *([Column("CV")] if several else []),
            *([Column("reference", numeric=False)] if marked else []),
            *_from(own),
        ),
        rows=tuple(
            (
                Cell(one.kpi.name),
                Cell(one.of or "fabric"),
                measured_cell(one),
                *([cv_cell(one)] if several else []),
                *([mark_cell(one)] if marked else []),
                *([Cell(one.detail, Tone.FAINT)] if _from(own) else []),
            )
            for one in own
        ),
    )


def _from(own: Sequence[Statistic]) -> list[Column]:
    """The column of what figures are computed from, if any of them says it."""
    return [Column("from", numeric=False)] if any(one.detail for one in own) else []


def _is_by_place(one: Statistic) -> bool:
    return bool(one.kpi.by and one.of)


def measured_cell(one: Statistic) -> Cell:
    """`1.6 ms [1.56 ms, 1.65 ms]`; the mean alone where all values are equal, or there is one."""
    write, found = one.kpi.unit.write, one.interval
    if found.low is None or found.high is None or found.low == found.high:
        return Cell(write(found.mean))
    return Cell(f"{write(found.mean)} [{write(found.low)}, {write(found.high)}]")


def cv_cell(one: Statistic) -> Cell:
    """The coefficient of variation, marked if it is below the recommended one."""
    if one.cv is None:
        return NOT_APPLICABLE
    return Cell(f"{one.cv:.1%}", Tone.GOOD if one.cv < RECOMMENDED_CV else Tone.PLAIN)


def mark_cell(one: Statistic) -> Cell:
    """The mark of the mean."""
    target, value = one.kpi.target, one.interval.mean
    if target is None:
        return NOT_APPLICABLE
    tone = Tone.GOOD if target.is_met(value) else Tone.PLAIN
    return Cell(target.mark(value, one.kpi.unit.write), tone)


def _latencies(bench: Bench) -> Table:
    """Means over the iterations of each percentile."""
    kpis = [latency.MEAN, *latency.SHARES]
    by_entry: dict[str, dict[Kpi, Statistic]] = {}
    for one in bench.statistics:
        if one.kpi in kpis:
            by_entry.setdefault(one.of, {})[one.kpi] = one
    return Table(
        title=Kind.LATENCY.value,
        columns=(
            Column("traffic", numeric=False),
            *(Column(kpi.name.removeprefix("latency ")) for kpi in kpis),
            Column("from", numeric=False),
        ),
        rows=tuple(
            (
                Cell(name),
                *(Cell(own[kpi].kpi.unit.write(own[kpi].interval.mean)) for kpi in kpis),
                Cell(own[latency.MEAN].detail, Tone.FAINT),
            )
            for name, own in by_entry.items()
        ),
        note=f"From the post of a message, or the command of an I/O, to its end. {DEFINITION}.",
    )


def _by_place(bench: Bench, kpi: Kpi, most: int) -> Table:
    own = [one for one in bench.statistics if one.kpi is kpi and one.of]
    own.sort(key=lambda one: -one.interval.mean)
    several = len(bench.conclusive) > 1
    return Table(
        title=f"{kpi.name} by {kpi.by}",
        columns=(
            Column(kpi.by, numeric=False),
            Column("measured"),
            *([Column("CV")] if several else []),
            *_from(own),
        ),
        rows=tuple(
            (
                Cell(one.of),
                measured_cell(one),
                *([cv_cell(one)] if several else []),
                *([Cell(one.detail, Tone.FAINT)] if _from(own) else []),
            )
            for one in own[:most]
        ),
        note=f"The highest {most} of {len(own):,}; the JSON document has all."
        if len(own) > most
        else "",
    )


def undefined_table(bench: Bench) -> Table:
    """The KPIs without a value, those of one reason together."""
    places: dict[tuple[str, str], list[str]] = {}
    every = len(bench.conclusive)
    for one in bench.missing:
        why = _in_seeds(one.reason, one.seeds, every)
        places.setdefault((one.kpi.name, why), []).append(one.of)
    alike: dict[tuple[str, str], list[str]] = {}
    for (kpi, why), of in places.items():
        alike.setdefault((why, shortened(of, _MOST_NAMED)), []).append(kpi)
    return Table(
        title="KPIs without a value",
        columns=tuple(Column(name, numeric=False) for name in ("KPI", "of", "why")),
        rows=tuple(
            (Cell(listed(kpis)), Cell(of or "fabric"), Cell(why, Tone.FAINT))
            for (why, of), kpis in alike.items()
        ),
    )


def _in_seeds(reason: str, seeds: Sequence[int], every: int) -> str:
    return reason if len(seeds) == every else f"{reason} ({seeds_in_words(seeds)})"


def identification_table(bench: Bench) -> Table:
    """The draft's table of the device under test."""
    pairs = dut.identification(bench.first.run).items()
    return Table(
        title="Device under test",
        columns=(Column("parameter", numeric=False), Column("value", numeric=False)),
        rows=tuple((Cell(name), Cell(value)) for name, value in pairs),
    )


def workload_table(bench: Bench) -> Table:
    rows = dut.workload(bench.first.run)
    return Table(
        title="Workload",
        columns=tuple(
            Column(name, numeric=name in ("flows", "bytes", "start")) for name in (rows or [{}])[0]
        ),
        rows=tuple(tuple(map(Cell, row.values())) for row in rows),
    )


def settings_tables(bench: Bench) -> Iterator[Table]:
    """The drafts' test configuration and host configuration."""
    spec = bench.first.run.spec
    yield _settings("Test configuration: switches", switch_settings(spec))
    yield _settings("Host configuration", host_settings(spec))


def _settings(title: str, values: Sequence[Value]) -> Table:
    return Table(
        title=title,
        columns=tuple(Column(name, numeric=False) for name in ("key", "value", "where", "origin")),
        rows=tuple(
            (Cell(own.key), Cell(own.value), Cell(own.where), Cell(_origin(own), Tone.FAINT))
            for own in values
        ),
        note="The JSON document has the reasons of derived values.",
    )


def _origin(own: Value) -> str:
    """Where a value comes from, without the reason."""
    return own.origin.partition(":")[0]


def definitions_table() -> Table:
    """What each KPI is, and where it is from."""
    return Table(
        title="Definitions",
        columns=tuple(Column(name, numeric=False) for name in ("KPI", "definition", "source")),
        rows=tuple(
            (Cell(kpi.name), Cell(kpi.definition), Cell(kpi.source, Tone.FAINT))
            for kpi in KPIS.values()
        ),
    )
