"""The rate at which message bytes of each flow arrive, over time.

With many flows, a strip shows the median and the range of all flows of one entry of `traffic:`.
With many entries, one strip shows all flows, and the strips below it show the slowest and the
fastest flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from emu.measure.binning import Floats, bin_edges, rate_per_bin
from emu.report.charts.chart import Chart, time_axis
from emu.report.charts.strips import BINS, Strip, stack
from emu.report.palette import BAD, GOOD, Colour, Legend, series_colour
from emu.report.run_view import RunFacts, last_finish_ns
from emu.units import format_rate

MOST_FLOWS = 16
"""The most flows that get a row each."""
MOST_ENTRIES = 12
"""The most entries of `traffic:` that get a row each. With more, all flows share one row."""
EXTREMES = 4
"""Rows for the slowest flows below that row, and as many for the fastest."""


@dataclass(frozen=True)
class Group:
    """The flows that share a row, all of one entry of `traffic:`."""

    traffic: str
    label: str
    flows: tuple[str, ...]
    colour: Colour


def rates(runs: Sequence[RunFacts]) -> Chart | None:
    """The chart of rates; None when nothing was delivered."""
    time = time_axis(runs)
    rates_of = [_flow_rates(run, time.end_ns) for run in runs]
    top = max((float(rate.max()) for own in rates_of for rate in own.values()), default=0.0)
    groups = _groups(runs)
    if not top or not groups:
        return None
    single = all(len(group.flows) == 1 for group in groups)
    rows = {
        group.label: [_strip(run, own, group) for run, own in zip(runs, rates_of, strict=True)]
        for group in groups
    }
    return Chart(
        title="Rate of each flow" if single else "Rates of the flows",
        svg=stack(runs, rows, time, top).svg("Rate of the flows over time"),
        legend=tuple(dict.fromkeys(Legend(group.traffic, group.colour) for group in groups)),
        caption=_caption(top, single=single),
    )


def _caption(top_bps: float, *, single: bool) -> str:
    what = "" if single else " The line is the median of the flows, the band covers all of them."
    return (
        f"Message bytes arriving; a full strip is {format_rate(top_bps)}.{what}"
        " The vertical line marks the end."
    )


def _groups(runs: Sequence[RunFacts]) -> list[Group]:
    """The rows: one for each flow; with many flows, one for each entry; with many entries as well,
    one for all flows, and one for each of the slowest and the fastest."""
    entries: dict[str, dict[str, None]] = {}
    for run in runs:
        for flow in run.flows:
            entries.setdefault(flow.traffic, {})[flow.name] = None
    groups = [
        Group(entry, entry, tuple(flows), series_colour(place))
        for place, (entry, flows) in enumerate(entries.items())
    ]
    if sum(len(group.flows) for group in groups) <= MOST_FLOWS:
        return [
            replace(group, label=flow, flows=(flow,)) for group in groups for flow in group.flows
        ]
    return groups if len(groups) <= MOST_ENTRIES else _extremes(runs)


def _extremes(runs: Sequence[RunFacts]) -> list[Group]:
    """Ranks each flow by its lowest goodput in any run. Unfinished flows count as 0."""
    goodput: dict[str, float] = {}
    for run in runs:
        for flow in run.flows:
            own = flow.goodput_bps if flow.completed else 0.0
            goodput[flow.name] = min(own, goodput.get(flow.name, own))
    ranked = sorted(goodput, key=lambda name: goodput[name])
    all_flows = Group("all flows", f"all {len(ranked)}", tuple(goodput), series_colour(0))
    slowest = [Group("the slowest", name, (name,), BAD) for name in ranked[:EXTREMES]]
    fastest = [Group("the fastest", name, (name,), GOOD) for name in ranked[-EXTREMES:]]
    return [all_flows, *slowest, *fastest]


def _flow_rates(run: RunFacts, end_ns: int) -> dict[str, Floats]:
    """Flow -> (bins,) bits per second."""
    series = run.recording.series
    per_ns = rate_per_bin(series.time_ns, series.flow_bytes, bin_edges(0, end_ns, BINS))
    return dict(zip(series.flows, per_ns.T * 8e9, strict=True))


def _strip(run: RunFacts, rates: dict[str, Floats], group: Group) -> Strip | None:
    own = np.array([rates[flow] for flow in group.flows if flow in rates])
    if not len(own):
        return None
    members = frozenset(group.flows)
    return Strip(
        middle=np.median(own, axis=0),
        low=own.min(axis=0) if len(own) > 1 else np.zeros(BINS),
        high=own.max(axis=0),
        colour=group.colour,
        end_ns=last_finish_ns([flow for flow in run.flows if flow.name in members]),
    )
