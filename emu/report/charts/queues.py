"""Queue depth over time, of the ports with the deepest queues."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from emu.measure.binning import bin_edges, peak_per_bin
from emu.report.charts.chart import Chart, TimeAxis, left_out, side_by_side, time_axis
from emu.report.facts import RunFacts
from emu.report.figure import inline_svg
from emu.report.palette import Legend, series_colour
from emu.report.scale import Unit, size_unit

MOST_PORTS = 6
"""More lines than this cannot be told apart in one picture."""
BINS = 300


def queues(runs: Sequence[RunFacts]) -> Chart | None:
    """None when no port ever had a queue."""
    peaks = _peaks(runs)
    hot = sorted(peaks, key=lambda port: -peaks[port])[:MOST_PORTS]
    if not hot:
        return None
    time, size = time_axis(runs), size_unit(peaks[hot[0]])
    figure, axes = side_by_side(runs, 2.6, time)
    for run, ax in zip(runs, axes, strict=True):
        _draw(ax, run, hot, time, size)
    axes[0].set_ylabel(f"queue ({size.name})")
    axes[0].set_ylim(bottom=0)
    return Chart(
        title="Queue depth",
        svg=inline_svg(figure, "Queue depth over time"),
        legend=tuple(Legend(port, series_colour(place)) for place, port in enumerate(hot)),
        caption=left_out("ports with a queue", len(hot), len(peaks), "the deepest"),
    )


def _peaks(runs: Sequence[RunFacts]) -> dict[str, int]:
    """Port -> its deepest queue in any of the runs; only ports that had one."""
    peaks: dict[str, int] = {}
    for run in runs:
        series = run.recording.series
        deepest = series.queue_bytes.max(axis=0, initial=0)
        for port, peak in zip(series.ports, deepest, strict=True):
            if peak:
                peaks[port] = max(peaks.get(port, 0), int(peak))
    return peaks


def _draw(ax: Axes, run: RunFacts, hot: Sequence[str], time: TimeAxis, size: Unit) -> None:
    series = run.recording.series
    edges = bin_edges(0, time.end_ns, BINS)
    depth = peak_per_bin(series.time_ns, series.queue_bytes, edges) / size.size
    for place, port in enumerate(hot):
        if port in series.ports:
            ax.stairs(
                depth[:, series.ports.index(port)],
                edges / time.unit.size,
                baseline=None,
                color=series_colour(place).light,
            )
