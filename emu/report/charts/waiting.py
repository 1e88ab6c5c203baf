"""Over time, the share for which flow control held ports back: by pauses or for want of credit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emu.measure.binning import bin_edges, rate_per_bin
from emu.report.charts.chart import Chart, TimeAxis, left_out, time_axis
from emu.report.charts.strips import BINS, Strip, stack
from emu.report.facts import RunFacts, waiting_ns
from emu.report.figure import inline_svg
from emu.report.palette import HELD_BACK

MOST_PORTS = 12


def waiting(runs: Sequence[RunFacts]) -> Chart | None:
    """None when no port was ever held back."""
    longest = _longest(runs)
    shown = sorted(longest, key=lambda port: -longest[port])[:MOST_PORTS]
    if not shown:
        return None
    time = time_axis(runs)
    rows = {port: [_strip(run, port, time) for run in runs] for port in shown}
    return Chart(
        title="Held back by flow control",
        svg=inline_svg(stack(runs, rows, time, top=1.0), "Share of time each port had to wait"),
        legend=tuple(dict.fromkeys(HELD_BACK[run.recording.fabric] for run in runs)),
        caption="Share of the time in which a port was not allowed to send; a full strip is 100 %. "
        + left_out("ports that were held back", len(shown), len(longest), "the longest"),
    )


def _longest(runs: Sequence[RunFacts]) -> dict[str, int]:
    """Port -> the longest it was held back in any of the runs; only ports that were."""
    longest: dict[str, int] = {}
    for run in runs:
        for port, ns in run.port_waiting_ns.items():
            if ns:
                longest[port] = max(ns, longest.get(port, 0))
    return longest


def _strip(run: RunFacts, port: str, time: TimeAxis) -> Strip | None:
    series = run.recording.series
    if port not in series.ports:
        return None
    waited = waiting_ns(series)[:, [series.ports.index(port)]]
    share = rate_per_bin(series.time_ns, waited, bin_edges(0, time.end_ns, BINS))[:, 0]
    share = np.minimum(share, 1.0)
    colour = HELD_BACK[run.recording.fabric].colour
    return Strip(middle=share, low=np.zeros(BINS), high=share, colour=colour)
