"""Inference: how many prompts waited how long for their KV cache and for their first token.

prompts │      ╭──── ┊ ╭──                 solid: KV wait
        │    ╭─╯   ╌╌┊╌╯                   dashed: TTFT
        │ ╭──╯  ╌╌╌  ┊                     dotted: the draft's reference for 99 % of KV waits
        └────────────┊───── time (log)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from emu.measure.prompts import KV_WAIT_MARK_NS, finished_ns
from emu.report.charts.chart import INCH, Chart, width_points
from emu.report.figure import Axis, Figure, Plot
from emu.report.palette import INK, Colour, Legend, series_colour
from emu.report.run_view import RunFacts
from emu.report.scale import time_unit
from traffic.graph import Asks

_Curves = tuple[tuple[str, Asks], ...]
_CURVES: _Curves = (("", Asks.KV_WAIT), ("5 3", Asks.PROMPT))
"""The dashes and the times of each curve."""
_SHORTEST_NS = 100
"""A log axis has no 0."""


def inference(runs: Sequence[RunFacts]) -> Chart | None:
    """A plot for each inference entry; None when no prompt of the runs has finished."""
    entries = list(dict.fromkeys(own.traffic for run in runs for own in run.prompts))
    found = {(run.name, entry): _times(run, entry) for run in runs for entry in entries}
    drawn = [times for of_entry in found.values() for times in of_entry if len(times)]
    if not drawn:
        return None
    every = np.concatenate(drawn)
    unit = time_unit(float(every.max()))
    x = Axis(
        max(_SHORTEST_NS, every.min()) / 1.2 / unit.size,
        1.3 * max(every.max(), KV_WAIT_MARK_NS) / unit.size,
        f"time ({unit.name})",
        is_log=True,
    )
    titles = entries if len(entries) > 1 else [""]
    figure = Figure(titles, width_points(runs), 2.6 * INCH, x, Axis(0, 103, "prompts (%)"))
    for entry, plot in zip(entries, figure.plots, strict=True):
        for place, run in enumerate(runs):
            _draw(plot, found[run.name, entry], unit.size, series_colour(place))
        _draw_mark(plot, unit.size)
    return Chart(
        title="Inference",
        svg=figure.svg("Distributions of KV waits and of times to first token"),
        legend=tuple(Legend(run.name, series_colour(place)) for place, run in enumerate(runs)),
        caption="Share of the finished prompts by KV wait (solid), which is what the fabric adds, "
        "and by TTFT (dashed). The dotted line is the IETF draft's reference for 99 % of KV waits, "
        "300 ms: a mark, not a limit.",
    )


def _times(run: RunFacts, entry: str) -> tuple[NDArray[np.int64], ...]:
    """The times of each curve, in order of size."""
    if entry not in {own.traffic for own in run.prompts}:
        return tuple(np.empty(0, np.int64) for _ in _CURVES)
    return tuple(finished_ns(run.recording.requests, entry, asks) for _, asks in _CURVES)


def _draw(plot: Plot, times: tuple[NDArray[np.int64], ...], unit_ns: float, colour: Colour) -> None:
    for (dash, _), took_ns in zip(_CURVES, times, strict=True):
        if len(took_ns):
            shares = np.arange(1, len(took_ns) + 1) * 100 / len(took_ns)
            plot.line(np.maximum(took_ns, _SHORTEST_NS) / unit_ns, shares, colour, dash=dash)


def _draw_mark(plot: Plot, unit_ns: float) -> None:
    mark = KV_WAIT_MARK_NS / unit_ns
    plot.line((mark, mark), (plot.y.low, plot.y.high), INK, dash="1 3", thick=1.0)
