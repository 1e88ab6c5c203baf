"""FCT slowdown in reports: a table and a chart, only for background load."""

from __future__ import annotations

import pytest

from emu.report.charts import chart_named
from emu.report.fct_table import fct_table
from emu.report.html import comparison_page
from emu.report.run_view import RunFacts
from emu.report.store import load_recording, save_recording
from emu.runtime.virtual import VirtualRunner
from tests.support.small_fabrics import spec_of, star
from tests.support.synthetic import four_fabrics

LOAD = star(4) + (
    "payload: elided\n"
    "traffic: [{name: load, pattern: background, among: all, sizes: hadoop, rate: 30Gbit}]\n"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    spec = spec_of(LOAD)
    topology, out = spec.topology.build(), tmp_path_factory.mktemp("run")
    save_recording(VirtualRunner().run(spec, out=out), out)
    return RunFacts("one", load_recording(out), spec, topology)


def test_the_table_has_a_row_for_each_tenth_and_one_for_all(run: RunFacts) -> None:
    """The figures are those of the summary."""
    rows = fct_table(run).rows
    (summary,) = run.summary["fct_slowdowns"]
    assert [row[1].text for row in rows][-1] == "all"
    assert len(rows) == len(summary["buckets"]) + 1 == 11
    assert rows[-1][2].text == "400"
    assert [row[-1].text for row in rows[:-1]] == [f"{b['p99']:.2f}" for b in summary["buckets"]]


def test_a_comparison_draws_fct_slowdown_over_sizes(run: RunFacts) -> None:
    """The chart names the largest size of each bucket, and a table has the figures."""
    page = comparison_page("both", [run, RunFacts("two", run.recording, run.spec, run.topology)])
    chart = chart_named("fct", [run])
    assert chart is not None
    for row in fct_table(run).rows[:-1]:
        assert row[1].text in chart.svg
    assert "load: FCT slowdown, 99\u00a0%" in page
    assert "FCT slowdown by message size" in page


def test_other_traffic_has_no_fct_slowdown() -> None:
    """Its messages wait for each other, or their time on an idle path is unknown."""
    fabrics = four_fabrics()
    assert not fct_table(fabrics[0]).rows
    assert chart_named("fct", fabrics) is None
