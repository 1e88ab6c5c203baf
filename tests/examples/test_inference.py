"""The example of inference passes its checks, and reports show what the fabric adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.report.comparison_tables import comparison_table
from emu.report.inference_table import inference_table
from emu.report.run_view import RunFacts
from emu.report.summary import summarise
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import load_spec

SPEC = Path(__file__).parents[2] / "topologies/inference.emu.yml"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFacts]:
    out = tmp_path_factory.mktemp("runs")
    return {
        name: RunFacts(name, VirtualRunner().run(spec, out=out / name), spec, spec.topology.build())
        for name, spec in load_spec(SPEC).variants().items()
    }


def test_the_checks_of_the_inference_example_pass(runs: dict[str, RunFacts]) -> None:
    failed = [check.detail for run in runs.values() for check in run.checks if not check.passed]
    assert failed == []


def test_sending_layer_by_layer_hides_the_transfer(runs: dict[str, RunFacts]) -> None:
    """The same prompts and the same bytes; the wait for the cache is less than half as long."""
    (by_layer,), (whole,) = runs["layer-wise"].prompts, runs["whole"].prompts
    assert by_layer.ttft.finished == whole.ttft.finished == 32
    assert by_layer.wait.p50_ns is not None
    assert whole.wait.p50_ns is not None
    assert by_layer.wait.p50_ns < whole.wait.p50_ns / 2


def test_reports_show_ttft_and_the_marks(runs: dict[str, RunFacts]) -> None:
    """Prompts have no goodput, and their times are not listed again as latencies."""
    run = runs["layer-wise"]
    rows = {row[1].text: row[-1].text for row in inference_table(run).rows}
    assert rows == {
        "TTFT": "500 ms",
        "KV transfer": "-",
        "KV wait": "300 ms",
        "KV wait / TTFT": "-",
    }
    assert not run.latencies
    labels = [row[0].text for row in comparison_table([*runs.values()]).rows]
    assert "chat: KV wait, 99 %" in labels
    assert "chat: median goodput" not in labels
    (prompts,) = summarise(run.recording)["prompts"]
    assert prompts["ttft"]["requests"] == 32
    assert prompts["kv_wait_mark_ns"] == 300_000_000
