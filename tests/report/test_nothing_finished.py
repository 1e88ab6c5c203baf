"""Runs in which nothing finishes have no statistics, as tables, pages, JSON and checks show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emu.report.charts import chart_named
from emu.report.comparison_tables import comparison_table
from emu.report.fct_table import fct_table
from emu.report.findings import findings
from emu.report.html import comparison_page, run_page
from emu.report.ios_table import ios_table
from emu.report.run_tables import latency_table
from emu.report.run_view import RunFacts
from emu.runtime.virtual import VirtualRunner
from tests.support.small_fabrics import spec_of, star

NOTHING_ARRIVES = (
    star(4)
    + """
payload: elided
traffic:
  - {name: messages, pattern: pair, from: h2, to: h1, size: 1MB, count: 4}
  - {name: disk, pattern: storage, from: h3, to: h1, block: 64KiB, depth: 2, count: 6}
  - {name: load, pattern: background, among: [h1, h4], sizes: hadoop, rate: 1Gbit, count: 5}
faults:
  - {loss: {cable: "s1:h1", probability: 100%}}
  - {loss: {cable: "h1:s1", probability: 100%}}
time_limit: 2ms
verify: [{iops: {traffic: disk, way: read, at_least: 1}}]
"""
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    spec = spec_of(NOTHING_ARRIVES)
    topology, out = spec.topology.build(), tmp_path_factory.mktemp("run")
    return RunFacts("one", VirtualRunner().run(spec, out=out), spec, topology)


def test_a_comparison_shows_that_none_finished(run: RunFacts) -> None:
    """The text replaces a time, a rate or a slowdown."""
    rows = {row[0].text: row[1].text for row in comparison_table([run]).rows}
    for name in ("messages: latency, 50 %", "messages: latency, 99 %"):
        assert rows[name] == "none of 4 finished"
    for name in ("disk: read IOPS", "disk: read latency, 50 %", "disk: read latency, 99 %"):
        assert rows[name] == "none of 6 finished"
    for name in ("load: FCT slowdown, 50 %", "load: FCT slowdown, 99 %"):
        assert rows[name] == "none of 10 finished"


def test_tables_of_a_run_have_dashes(run: RunFacts) -> None:
    """The number of unfinished messages is beside them."""
    for table in (latency_table(run), ios_table(run), fct_table(run)):
        assert table.rows
        for row in table.rows:
            assert {cell.text for cell in row[-4:]} == {"-"}


def test_the_summary_has_null(run: RunFacts) -> None:
    """0 would be a result."""
    (messages,), (disk,) = run.summary["latencies"][:1], run.summary["ios"]
    (load,) = run.summary["fct_slowdowns"]
    for name in ("mean_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns"):
        assert messages[name] is None
        assert disk[name] is None
    assert (disk["iops"], disk["bandwidth_bps"]) == (None, None)
    assert (load["whole"]["mean"], load["whole"]["p50"], load["whole"]["p99"]) == (None,) * 3


def test_pages_and_charts_need_no_statistic(run: RunFacts) -> None:
    """The same holds in comparisons and in sentences."""
    other = replace(run, name="two")
    assert chart_named("fct", [run]) is not None
    pages = [comparison_page("both", [run, other]), run_page(run)]
    assert "none of 4 finished" in pages[0]
    assert all(">0.00<" not in page for page in pages)
    assert not any("99 % of messages:" in sentence for sentence in findings([run, other]))


def test_a_check_without_statistics_fails_with_the_reason(run: RunFacts) -> None:
    (check,) = run.checks
    assert check.passed is False
    assert check.detail == "none of 6 reads finished"
