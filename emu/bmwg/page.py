"""The page of a benchmark report: one HTML file that needs no network.

Its sections are those that the training draft asks for: device under test, topology, configuration
of switches and hosts, results as tables and graphs, anomalies, repeatability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emu.bmwg.cdf import latency_chart
from emu.bmwg.conditions import anomalies_in_words, deviations, sentences
from emu.bmwg.iterations import Bench
from emu.bmwg.tables import (
    definitions_table,
    identification_table,
    place_tables,
    result_tables,
    settings_tables,
    undefined_table,
    workload_table,
)
from emu.report.charts import Chart, charts
from emu.report.palette import COLOURS, LOAD
from emu.report.picture import Picture, picture
from emu.report.run_view import RunFacts
from emu.report.templating import environment

MOST_ROWS = 100
"""The most rows of a table by port, priority or switch."""


@dataclass(frozen=True)
class Drawn:
    """A fabric with its name, for the template."""

    name: str
    topology: Picture


def bench_page(bench: Bench) -> str:
    """The page."""
    run = bench.first.run
    return (
        environment()
        .get_template("bench.html.j2")
        .render(
            title=bench.name,
            inconclusive=len(bench.iterations) - len(bench.conclusive),
            iterations=len(bench.iterations),
            sentences=list(sentences(bench)),
            identification=identification_table(bench),
            workload=workload_table(bench),
            drawn=list(_drawn(run)),
            load=LOAD,
            results=list(result_tables(bench)),
            places=[table for table in place_tables(bench, MOST_ROWS) if table.rows],
            undefined=undefined_table(bench),
            charts=_charts(run),
            anomalies=anomalies_in_words(bench),
            deviations=list(deviations(bench)),
            settings=list(settings_tables(bench)),
            definitions=definitions_table(),
            colours=COLOURS,
        )
    )


def _drawn(run: RunFacts) -> Iterator[Drawn]:
    """The fabric of a conclusive run; none if it has too many nodes for a picture."""
    topology = picture(run) if run.conclusive else None
    if topology is not None:
        yield Drawn(run.name, topology)


def _charts(run: RunFacts) -> list[Chart]:
    """The charts of the first iteration, with the latencies first."""
    latencies = latency_chart(run) if run.conclusive else None
    return [*([latencies] if latencies else []), *charts([run])]
