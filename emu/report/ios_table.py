"""Storage I/O over the fabric, in fio's figures."""

from __future__ import annotations

from emu.measure.ios import IoFigures
from emu.report.run_view import RunFacts
from emu.report.table import Cell, Column, Table, Tone, of_finished
from emu.units import format_rate, format_time_ns

_TIMES = {
    "avg": "mean",
    "50 %": "p50",
    "90 %": "p90",
    "95 %": "p95",
    "99 %": "p99",
    "99.9 %": "p999",
    "max": "max",
}


def ios_table(run: RunFacts) -> Table:
    """A row for the reads of each storage entry and one for its writes; no rows without storage."""
    return Table(
        title="Storage",
        columns=(
            Column("traffic", numeric=False),
            Column("", numeric=False),
            *map(Column, ("I/Os", "unfinished", "IOPS", "bandwidth", *_TIMES)),
        ),
        rows=tuple(_row(run, figures) for figures in run.ios),
        note="Times are from the command to the response (fio's lat); IOPS and bandwidth are over "
        "the time from the first command to the last response.",
    )


def _row(run: RunFacts, figures: IoFigures) -> tuple[Cell, ...]:
    latency = figures.latency
    return (
        Cell(latency.traffic),
        Cell(figures.way),
        Cell(f"{latency.requests:,}"),
        Cell(f"{latency.unfinished:,}", Tone.BAD if latency.unfinished else Tone.PLAIN),
        of_finished(run, figures.iops, "{:,}".format),
        of_finished(run, figures.bandwidth_bps, format_rate),
        *(
            of_finished(run, getattr(latency, f"{time}_ns"), format_time_ns)
            for time in _TIMES.values()
        ),
    )
