"""The share of time in which pauses or missing credit kept each port from sending."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emu.measure.binning import bin_edges, rate_per_bin
from emu.report.charts.chart import Chart, TimeAxis, left_out, time_axis
from emu.report.charts.strips import BINS, Strip, stack
from emu.report.palette import HELD_BACK
from emu.report.run_view import RunFacts

MOST_PORTS = 12


def waiting(runs: Sequence[RunFacts]) -> Chart | None:
    """The chart of waiting; None when flow control held no port back."""
    longest = _longest(runs)
    shown = sorted(longest, key=lambda port: -longest[port])[:MOST_PORTS]
    if not shown:
        return None
    time = time_axis(runs)
    strips = [_strips(run, shown, time) for run in runs]
    rows = {port: [own.get(port) for own in strips] for port in shown}
    return Chart(
        title="Held back by flow control",
        svg=stack(runs, rows, time, top=1.0).svg("Share of time each port had to wait"),
        legend=tuple(
            dict.fromkeys(HELD_BACK[run.recording.fabric_kind.flow_control] for run in runs)
        ),
        caption="Share of the time in which a port was not allowed to send; a full strip is 100 %. "
        + left_out("ports that were held back", len(shown), len(longest), "the longest"),
    )


def _longest(runs: Sequence[RunFacts]) -> dict[str, int]:
    """Port -> how long flow control held it back, in the run with the longest time. Ports that
    never waited are left out."""
    longest: dict[str, int] = {}
    for run in runs:
        for port, ns in run.port_waiting_ns.items():
            if ns:
                longest[port] = max(ns, longest.get(port, 0))
    return longest


def _strips(run: RunFacts, ports: Sequence[str], time: TimeAxis) -> dict[str, Strip]:
    """The strip of each of these ports that the run has."""
    series = run.recording.series
    own = [port for port in ports if port in series.ports]
    places = [series.ports.index(port) for port in own]
    waited = series.paused_ns[:, places] + series.credit_wait_ns[:, places]
    shares = rate_per_bin(series.time_ns, waited, bin_edges(0, time.end_ns, BINS))
    colour = HELD_BACK[run.recording.fabric_kind.flow_control].colour
    return {
        port: Strip(middle=share, low=np.zeros(BINS), high=share, colour=colour)
        for port, share in zip(own, np.minimum(shares, 1.0).T, strict=True)
    }
