"""Measured bus bandwidths beside emulated ones: on the terminal, on a page, and as JSON.

The ratio is emulated over measured: above 1, the emulated system is faster. An emulated rank has no
software and no GPU, so it comes out above a measurement where these take time, as they do for small
sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from emu.measure.nccl_output import MeasuredRun, MeasuredSize
from emu.measure.records import JobRecord
from emu.report.charts.chart import INCH, Chart
from emu.report.figure import Axis, Figure, Plot
from emu.report.palette import COLOURS, Colour, Legend, series_colour
from emu.report.table import NOT_APPLICABLE, UNFINISHED, Cell, Column, Table
from emu.report.templating import environment
from emu.units import format_size, format_time_ns

_GB = 1e9


@dataclass(frozen=True)
class Beside:
    """One size, emulated and perhaps measured."""

    job: JobRecord
    measured: MeasuredSize | None

    @property
    def busbw_gb_per_s(self) -> float | None:
        """Emulated; None: it did not finish."""
        rate = self.job.busbw_bytes_per_s
        return None if rate is None else rate / _GB

    @property
    def ratio(self) -> float | None:
        """Emulated over measured bus bandwidth."""
        if self.measured is None or self.busbw_gb_per_s is None:
            return None
        return self.busbw_gb_per_s / self.measured.busbw_gb_per_s


def notes(measured: MeasuredRun, ranks: int) -> Iterator[str]:
    """Where the measurement is from, and what differs."""
    yield from measured.notes
    if measured.ranks not in (None, ranks):
        yield (
            f"measured with {measured.ranks} ranks, emulated with {ranks}: times do not compare, "
            "and bus bandwidths do only where the fabric is the limit"
        )


def closing_lines(measured: MeasuredRun, rows: Sequence[Beside], ranks: int) -> Iterator[str]:
    """The comparison below nccl-tests' table. Each line is a comment there."""
    yield f"# Measured: {measured.file}"
    for note in notes(measured, ranks):
        yield f"#   {note}"
    yield f"# {'size':>10}  {'measured':>10}  {'emulated':>10}  {'emulated /':>10}"
    yield f"# {'(B)':>10}  {'(GB/s)':>10}  {'(GB/s)':>10}  {'measured':>10}"
    for row in rows:
        if row.measured is not None:
            own = _written(row.busbw_gb_per_s)
            ratio = _written(row.ratio)
            theirs = _written(row.measured.busbw_gb_per_s)
            yield f"# {row.job.bytes:>10}  {theirs:>10}  {own:>10}  {ratio:>10}"
    yield "#"


def _written(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.2f}"


def to_mapping(measured: MeasuredRun, rows: Sequence[Beside], ranks: int) -> dict[str, Any]:
    """The comparison for programs. `ratio` is emulated over measured bus bandwidth."""
    return {
        "file": measured.file,
        "notes": list(notes(measured, ranks)),
        "ranks": measured.ranks,
        "results": [
            {
                "size_bytes": row.job.bytes,
                "measured": asdict(row.measured),
                "busbw_gb_per_s": row.busbw_gb_per_s,
                "ratio": row.ratio,
            }
            for row in rows
            if row.measured is not None
        ],
    }


def page(title: str, device: str, rows: Sequence[Beside], measured: MeasuredRun | None) -> str:
    """One HTML file that needs no network."""
    ranks = rows[0].job.ranks if rows else 0
    comparison = () if measured is None else (f"Measured: {measured.file}", *notes(measured, ranks))
    return (
        environment()
        .get_template("nccl.html.j2")
        .render(
            title=title,
            sentences=(f"{ranks} ranks; {device}.", *comparison),
            charts=[chart for chart in [_chart(rows)] if chart is not None],
            table=_table(rows, with_measured=measured is not None),
            colours=COLOURS,
        )
    )


def _table(rows: Sequence[Beside], *, with_measured: bool) -> Table:
    more = ("measured busbw", "emulated / measured") if with_measured else ()
    return Table(
        title="Bus bandwidth",
        columns=(
            Column("size"),
            Column("algorithm", numeric=False),
            *map(Column, ("time", "busbw", *more)),
        ),
        rows=tuple(
            (*_own_cells(row), *(_measured_cells(row) if with_measured else ())) for row in rows
        ),
        note="Bus bandwidth in GB/s, as nccl-tests defines it.",
    )


def _own_cells(row: Beside) -> tuple[Cell, ...]:
    took = row.job.took_ns
    return (
        Cell(format_size(row.job.bytes)),
        Cell(row.job.algorithm),
        UNFINISHED if took is None else Cell(format_time_ns(took)),
        UNFINISHED if row.busbw_gb_per_s is None else Cell(f"{row.busbw_gb_per_s:.2f}"),
    )


def _measured_cells(row: Beside) -> tuple[Cell, ...]:
    if row.measured is None:
        return (NOT_APPLICABLE, NOT_APPLICABLE)
    ratio = NOT_APPLICABLE if row.ratio is None else Cell(f"{row.ratio:.2f}")
    return (Cell(f"{row.measured.busbw_gb_per_s:.2f}"), ratio)


def _chart(rows: Sequence[Beside]) -> Chart | None:
    """Bus bandwidth over size."""
    emulated = [
        (row.job.bytes, row.busbw_gb_per_s) for row in rows if row.busbw_gb_per_s is not None
    ]
    measured = [
        (row.job.bytes, row.measured.busbw_gb_per_s) for row in rows if row.measured is not None
    ]
    curves = {"emulated": emulated, "measured": measured}
    points = [*emulated, *measured]
    if not points:
        return None
    sizes = sorted({size for size, _ in points})
    labels = [(float(size), format_size(size)) for size in sizes[:: max(1, len(sizes) // 8)]]
    x = Axis(sizes[0] / 1.2, sizes[-1] * 1.2, "size", labels, is_log=True)
    y = Axis(0, 1.1 * max(rate for _, rate in points), "bus bandwidth (GB/s)")
    figure = Figure([""], 12.6 * INCH, 3 * INCH, x, y)
    drawn = [name for name in curves if curves[name]]
    for place, name in enumerate(drawn):
        _draw(figure.plots[0], curves[name], series_colour(place))
    return Chart(
        title="Bus bandwidth",
        svg=figure.svg("Bus bandwidth over size"),
        legend=tuple(Legend(name, series_colour(place)) for place, name in enumerate(drawn)),
        is_wide=True,
    )


def _draw(plot: Plot, points: Sequence[tuple[int, float]], colour: Colour) -> None:
    sizes, rates = zip(*points, strict=True)
    plot.line(sizes, rates, colour)
    plot.dots(sizes, rates, colour)
