"""Queue depth over time at the ports with the deepest queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emu.measure.binning import Floats, bin_edges, peak_per_bin
from emu.report.charts.chart import Chart, left_out, side_by_side, time_axis
from emu.report.figure import Axis, Plot
from emu.report.palette import Legend, series_colour
from emu.report.run_view import RunFacts
from emu.report.scale import size_unit

MOST_PORTS = 6
"""With more lines than this, a reader cannot tell them apart."""
BINS = 300


def queues(runs: Sequence[RunFacts]) -> Chart | None:
    """The chart of queue depth; None when no port ever had a queue."""
    peaks = _peaks(runs)
    deepest_ports = sorted(peaks, key=lambda port: -peaks[port])[:MOST_PORTS]
    if not deepest_ports:
        return None
    time, size = time_axis(runs), size_unit(peaks[deepest_ports[0]])
    depth = Axis(0, 1.05 * peaks[deepest_ports[0]] / size.size, f"queue ({size.name})")
    figure = side_by_side(runs, 2.6, time, depth)
    edges = bin_edges(0, time.end_ns, BINS)
    for run, plot in zip(runs, figure.plots, strict=True):
        _draw(
            plot,
            deepest_ports,
            edges / time.unit.size,
            _depths(run, deepest_ports, edges),
            size.size,
        )
    return Chart(
        title="Queue depth",
        svg=figure.svg("Queue depth over time"),
        legend=tuple(
            Legend(port, series_colour(place)) for place, port in enumerate(deepest_ports)
        ),
        caption=left_out("ports with a queue", len(deepest_ports), len(peaks), "the deepest"),
    )


def _peaks(runs: Sequence[RunFacts]) -> dict[str, int]:
    """Port -> its deepest queue in any of the runs. Ports without a queue are left out."""
    peaks: dict[str, int] = {}
    for run in runs:
        series = run.recording.series
        deepest = series.queue_bytes.max(axis=0, initial=0)
        for port, peak in zip(series.ports, deepest, strict=True):
            if peak:
                peaks[port] = max(peaks.get(port, 0), int(peak))
    return peaks


def _depths(run: RunFacts, deepest_ports: Sequence[str], edges: Floats) -> dict[str, Floats]:
    series = run.recording.series
    shown = [port for port in deepest_ports if port in series.ports]
    places = [series.ports.index(port) for port in shown]
    peaks = peak_per_bin(series.time_ns, series.queue_bytes[:, places], edges)
    return dict(zip(shown, peaks.T, strict=True))


def _draw(
    plot: Plot,
    deepest_ports: Sequence[str],
    edges: Floats,
    depths: Mapping[str, Floats],
    size: float,
) -> None:
    for place, port in enumerate(deepest_ports):
        if port in depths:
            plot.step_line(edges, depths[port] / size, series_colour(place))
