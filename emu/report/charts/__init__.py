"""The charts of a report: quantities over time, and completion times of flows.

Each chart shows one run or several. Several runs share the same scales, so that
fabrics can be compared. A chart that leaves something out says so in its caption.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu.report.charts.chart import Chart
from emu.report.charts.completion import completion
from emu.report.charts.fct import fct
from emu.report.charts.inference import inference
from emu.report.charts.lateness import lateness
from emu.report.charts.load import load
from emu.report.charts.processors import processors
from emu.report.charts.queues import queues
from emu.report.charts.racks import racks
from emu.report.charts.rates import rates
from emu.report.charts.waiting import waiting
from emu.report.run_view import RunFacts

__all__ = ["Chart", "chart_named", "charts"]

_DRAWN = {
    "queues": queues,
    "completion": completion,
    "fct": fct,
    "inference": inference,
    "rates": rates,
    "waiting": waiting,
    "load": load,
    "racks": racks,
}

_OF_PACKETS = ("queues", "waiting")
"""Charts of what only a model with packets knows."""


def charts(runs: Sequence[RunFacts]) -> list[Chart]:
    """All the charts that these runs have samples for.

    Inconclusive runs appear only in the charts of lateness and of processors.
    """
    conclusive = [run for run in runs if run.conclusive]
    with_packets = [run for run in conclusive if run.has_packets]
    drawn = [
        draw(of)
        for name, draw in _DRAWN.items()
        if (of := with_packets if name in _OF_PACKETS else conclusive)
    ]
    drawn += [lateness(runs), processors(runs)]
    return [chart for chart in drawn if chart is not None]


def chart_named(name: str, runs: Sequence[RunFacts]) -> Chart | None:
    """The chart with this name, such as `queues`; None when the runs have no samples for it."""
    return _DRAWN[name](runs)
