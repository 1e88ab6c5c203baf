"""The example of storage traffic beside a collective passes its checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.report.comparison_tables import comparison_table
from emu.report.ios_table import ios_table
from emu.report.run_view import RunFacts
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import load_spec

SPEC = Path(__file__).parents[2] / "topologies" / "storage.emu.yml"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    spec, out = load_spec(SPEC), tmp_path_factory.mktemp("run")
    topology = spec.topology.build()
    return RunFacts(spec.name, VirtualRunner().run(spec, out=out), spec, topology)


def test_the_checks_of_the_storage_example_pass(run: RunFacts) -> None:
    """The run is on the virtual clock."""
    assert {check.check: check.detail for check in run.checks if not check.passed} == {}


def test_reports_show_ios_as_fio_does(run: RunFacts) -> None:
    """12 queues of 100 I/Os have IOPS and latencies, and their flows have no goodput."""
    reads, writes = (own.latency.requests for own in run.ios)
    assert (reads, writes) == (840, 360)
    assert [row[1].text for row in ios_table(run).rows] == ["read", "write"]
    rows = [row[0].text for row in comparison_table([run, run]).rows]
    assert "drives: read IOPS" in rows
    assert "drives: write latency, 99 %" in rows
    assert "drives: median goodput" not in rows
    assert not run.latencies, "they are told with the I/Os"
