"""Bytes on each cable beside message bytes delivered: bars for each run.

    delivered        ▇▇▇▇▇▇
    leaf1 > spine1   ▇▇▇▇▇▇▇▇▇▇▇▇
    leaf1 > spine2

Cables that carry only ACKs in every run are left out. In a large fabric the delivered rate is
many times the rate of one cable. The caption then gives it instead of a bar.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu.measure.binning import growth
from emu.report.charts.chart import INCH, Chart, left_out, width_points
from emu.report.figure import Axis, Figure, Plot
from emu.report.palette import Legend, series_colour
from emu.report.run_view import RunFacts
from emu.units import format_rate
from emu.words import listed

MOST_CABLES = 6
DELIVERED = "delivered"
CARRIED = "Bytes on each cable"
_BOTH = "Message bytes delivered, and bytes on each cable, from first start to last end. "
MOST_TIMES = 4
"""The longest bar of delivered bytes, in multiples of the busiest cable's bar. With a longer one
the bars of the cables would be too short to read."""
_IN_USE = 0.05
"""A cable is in use above this part of the busiest cable's rate. ACKs are less."""
_GBPS = 1e9


def load(runs: Sequence[RunFacts]) -> Chart | None:
    """The chart of load; None when nothing was sent."""
    carried = [_carried_bps(run) for run in runs]
    most = {port: max(own.get(port, 0.0) for own in carried) for own in carried for port in own}
    busiest = max(most.values(), default=0.0)
    used = [port for port, bps in most.items() if bps > _IN_USE * busiest]
    shown = sorted(sorted(used, key=lambda port: -most[port])[:MOST_CABLES])
    if not shown:
        return None
    delivered = [_delivered_bps(run) for run in runs]
    fits = max(delivered) <= MOST_TIMES * busiest
    rows = [DELIVERED, *shown] if fits else shown
    values = [
        [*([bps] if fits else []), *(own.get(port, 0.0) for port in shown)]
        for bps, own in zip(delivered, carried, strict=True)
    ]
    labels = [(-float(row), name.replace(":", " > ")) for row, name in enumerate(rows)]
    y = Axis(0.5 - len(rows), 0.5, labels=labels, grid=False)
    x = Axis(0, 1.05 * max(max(own) for own in values) / _GBPS, "rate (Gb/s)")
    height = 0.7 + (0.14 + 0.12 * len(runs)) * len(rows)
    figure = Figure([""], width_points(runs), INCH * height, x, y)
    for place, own in enumerate(values):
        _draw(figure.plots[0], own, place, len(runs))
    return Chart(
        title="Load",
        svg=figure.svg("Message bytes delivered, and bytes on each cable" if fits else CARRIED),
        legend=tuple(Legend(run.name, series_colour(place)) for place, run in enumerate(runs)),
        caption=(_BOTH if fits else _apart(runs, delivered))
        + left_out("cables in use", len(shown), len(used), "the busiest"),
    )


def _apart(runs: Sequence[RunFacts], delivered_bps: Sequence[float]) -> str:
    rates = [
        f"{format_rate(bps)} by {run.name}" for run, bps in zip(runs, delivered_bps, strict=True)
    ]
    return f"{CARRIED}, from first start to last end. Message bytes delivered: {listed(rates)}. "


def _carried_bps(run: RunFacts) -> dict[str, float]:
    """The mean rate that each sampled port sent over the run's window."""
    series, (start, end) = run.recording.series, run.window_ns
    sent = growth(series.time_ns, series.tx_bytes, start, end)
    return {
        port: float(bytes_) * 8e9 / (end - start)
        for port, bytes_ in zip(series.ports, sent, strict=True)
    }


def _delivered_bps(run: RunFacts) -> float:
    series, (start, end) = run.recording.series, run.window_ns
    delivered = growth(series.time_ns, series.flow_bytes, start, end)
    return float(delivered.sum()) * 8e9 / (end - start)


def _draw(plot: Plot, values: Sequence[float], lane: int, lanes: int) -> None:
    offset = (lane + 0.5) * 0.8 / lanes - 0.4
    for row, bps in enumerate(values):
        plot.bar((0, bps / _GBPS), -row - offset, 0.7 / lanes, series_colour(lane))
