"""The rate at which message bytes arrive, over time, of each flow.

Where there are many flows, a strip shows all flows of one entry of `traffic:`,
their median and the range they cover.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emu.measure.binning import Floats, bin_edges, rate_per_bin
from emu.report.charts.chart import Chart, time_axis
from emu.report.charts.strips import BINS, Strip, stack
from emu.report.facts import RunFacts, last_finish_ns
from emu.report.figure import inline_svg
from emu.report.palette import Colour, Legend, series_colour
from emu.units import format_rate

MOST_FLOWS = 16


def rates(runs: Sequence[RunFacts]) -> Chart | None:
    """None when nothing was delivered."""
    time = time_axis(runs)
    by_run = [_flow_rates(run, time.end_ns) for run in runs]
    top = max((float(rate.max()) for own in by_run for rate in own.values()), default=0.0)
    if not top:
        return None
    traffic = _flows_by_traffic(runs)
    single = sum(len(flows) for flows in traffic.values()) <= MOST_FLOWS
    colours = {entry: series_colour(place) for place, entry in enumerate(traffic)}
    rows = {
        label: [
            _strip(run, own, flows, colours[entry]) for run, own in zip(runs, by_run, strict=True)
        ]
        for entry, members in traffic.items()
        for label, flows in ([(flow, [flow]) for flow in members] if single else [(entry, members)])
    }
    return Chart(
        title="Rate of each flow" if single else "Rates of the flows",
        svg=inline_svg(stack(runs, rows, time, top), "Rate of the flows over time"),
        legend=tuple(Legend(entry, colour) for entry, colour in colours.items()),
        caption=_caption(top, single=single),
    )


def _caption(top_bps: float, *, single: bool) -> str:
    what = "" if single else " The line is the median of the flows, the band covers all of them."
    return (
        f"Message bytes arriving; a full strip is {format_rate(top_bps)}.{what}"
        " The upright line is the end."
    )


def _flows_by_traffic(runs: Sequence[RunFacts]) -> dict[str, list[str]]:
    """Names of flows by the entry of `traffic:` they belong to, over all runs."""
    groups: dict[str, dict[str, None]] = {}
    for run in runs:
        for flow in run.flows:
            groups.setdefault(flow.traffic, {})[flow.name] = None
    return {entry: list(flows) for entry, flows in groups.items()}


def _flow_rates(run: RunFacts, end_ns: int) -> dict[str, Floats]:
    """Flow -> (bins,) bits per second."""
    series = run.recording.series
    per_ns = rate_per_bin(series.time_ns, series.flow_bytes, bin_edges(0, end_ns, BINS))
    return dict(zip(series.flows, per_ns.T * 8e9, strict=True))


def _strip(
    run: RunFacts, by_flow: dict[str, Floats], flows: Sequence[str], colour: Colour
) -> Strip | None:
    own = np.array([by_flow[flow] for flow in flows if flow in by_flow])
    if not len(own):
        return None
    return Strip(
        middle=np.median(own, axis=0),
        low=own.min(axis=0) if len(own) > 1 else np.zeros(BINS),
        high=own.max(axis=0),
        colour=colour,
        end_ns=last_finish_ns([flow for flow in run.flows if flow.name in flows]),
    )
