"""FCT slowdown of background loads, by message size."""

from __future__ import annotations

from collections.abc import Iterator

from emu.measure.fct import Bucket, FctSlowdown
from emu.measure.percentile import DEFINITION
from emu.report.run_view import RunFacts
from emu.report.table import Cell, Column, Table, Tone, of_finished
from emu.units import format_size


def fct_table(run: RunFacts) -> Table:
    """A row for each tenth of an entry's messages, ordered by size, and one for all messages."""
    return Table(
        title="FCT slowdown",
        columns=(
            Column("traffic", numeric=False),
            Column("up to"),
            Column("messages"),
            Column("unfinished"),
            *map(Column, ("mean", "50 %", "95 %", "99 %")),
        ),
        rows=tuple(row for slowdown in run.fct_slowdowns for row in _rows(run, slowdown)),
        note="Completion time divided by that of the same message on idle cables and switches. It "
        "includes the wait for earlier messages of the queue pair, which more connections "
        "shorten. "
        f"{DEFINITION}: n is messages less unfinished.",
    )


def _rows(run: RunFacts, slowdown: FctSlowdown) -> Iterator[tuple[Cell, ...]]:
    for bucket in slowdown.buckets:
        yield _row(run, slowdown.traffic, format_size(bucket.up_to_bytes), bucket)
    yield _row(run, slowdown.traffic, "all", slowdown.whole)


def _row(run: RunFacts, traffic: str, sizes: str, bucket: Bucket) -> tuple[Cell, ...]:
    return (
        Cell(traffic),
        Cell(sizes),
        Cell(f"{bucket.messages:,}"),
        Cell(f"{bucket.unfinished:,}", Tone.BAD if bucket.unfinished else Tone.PLAIN),
        *(
            of_finished(run, value, "{:,.2f}".format)
            for value in (bucket.mean, bucket.p50, bucket.p95, bucket.p99)
        ),
    )
