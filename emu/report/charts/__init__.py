"""The pictures of a report: what happened over time, and when each flow was over.

Each chart takes one run or several. Several stand side by side on shared
scales, because that is what makes fabrics comparable. Where there is more than
can be told apart, the caption says what was left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu.report.charts.chart import Chart
from emu.report.charts.completion import completion
from emu.report.charts.fct import fct
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
    "rates": rates,
    "waiting": waiting,
    "load": load,
    "racks": racks,
}


def charts(runs: Sequence[RunFacts]) -> list[Chart]:
    """All the charts that these runs have samples for.

    Of a run that the machine did not keep up with only what the machine did is shown.
    """
    honest = [run for run in runs if run.conclusive]
    drawn = [draw(honest) for draw in _DRAWN.values() if honest]
    drawn += [lateness(runs), processors(runs)]
    return [chart for chart in drawn if chart is not None]


def chart_named(name: str, runs: Sequence[RunFacts]) -> Chart | None:
    """One of them: `queues`, `load` and so on; None without samples for it."""
    return _DRAWN[name](runs)
