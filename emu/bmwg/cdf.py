"""Cumulative distribution of latencies, which the drafts recommend as a graph.

100 % │          ┌────      share of messages or I/Os
      │      ┌───┘          that took no longer
  0 % ┼──────┘
       10 us     1 ms       on a logarithmic scale
"""

from __future__ import annotations

import numpy as np

from emu.bmwg.latency import latencies_ns
from emu.measure.requests import Column
from emu.report.charts.chart import INCH, Chart, width_points
from emu.report.figure import Axis, Figure
from emu.report.palette import Legend, series_colour
from emu.report.run_view import RunFacts
from emu.report.scale import time_unit

MOST_STEPS = 400
"""The most steps of a curve; of more latencies, evenly spaced quantiles."""


def latency_chart(run: RunFacts) -> Chart | None:
    """A curve for each traffic entry; None if no message or I/O has a time of its own."""
    found = {name: latencies_ns(run, name)[0] for name in run.entries}
    curves = {name: np.sort(own) for name, own in found.items() if len(own)}
    if not curves:
        return None
    longest = max(int(own[-1]) for own in curves.values())
    shortest = max(1, min(int(own[0]) for own in curves.values()))
    unit = time_unit(longest)
    x = Axis(
        0.9 * shortest / unit.size, 1.1 * longest / unit.size, f"latency ({unit.name})", is_log=True
    )
    figure = Figure([""], width_points([run]), 2.6 * INCH, x, Axis(0, 100, "% of messages"))
    for place, own in enumerate(curves.values()):
        values, shares = _steps(own)
        figure.plots[0].step_line(values / unit.size, shares, series_colour(place))
    return Chart(
        title="Latency, cumulative",
        svg=figure.svg("Cumulative distribution of latencies"),
        legend=tuple(Legend(name, series_colour(place)) for place, name in enumerate(curves)),
        caption="Share of messages, or I/Os, that took no longer. Unfinished ones are left out.",
    )


def _steps(took_ns: Column) -> tuple[Column, list[float]]:
    """Edges and heights of a step curve: after the i-th of n sorted latencies, i / n."""
    n = len(took_ns)
    chosen = np.unique(np.linspace(0, n - 1, min(n, MOST_STEPS)).round().astype(np.int64))
    edges = np.append(took_ns[chosen], took_ns[-1])
    return edges, (100 * (chosen + 1) / n).tolist()
