"""`emu bench-report`: what it prints, its files, its exit codes, and `emu.bench_report`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

import emu
from emu.bmwg.catalogue import KPIS
from emu.bmwg.iterations import Bench, Iteration
from emu.bmwg.page import bench_page
from emu.bmwg.tables import result_tables
from emu.bmwg.trial import Trial
from emu.bmwg.write import bench_document
from emu.cli.main import cli
from emu.errors import ExitCode, UsageError
from emu.explain.results_schema import schema
from tests.support.synthetic import INCONCLUSIVE, record, run, spec

ROOT = Path(__file__).parents[2]
STORAGE = ROOT / "topologies/storage.emu.yml"
PAIR = ROOT / "topologies/pair.emu.yml"
ENDS = {f"incast.h{n}-h1": 600_000 for n in range(2, 9)} | {"victim": 300_000}


def bench_report(*words: str | Path) -> Result:
    line = ("bench-report", *map(str, words), "--clock", "virtual", "--quiet")
    return CliRunner().invoke(cli, line)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    printed = bench_report(STORAGE, "--interference", "--seeds", "2", "--out", folder)
    assert printed.exit_code == 0, printed.output
    (folder / "printed.txt").write_text(printed.stdout)
    return folder


@pytest.fixture(scope="module")
def document(out: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((out / "bench-report.json").read_text())
    return read


def test_the_document_follows_its_schema(document: dict[str, Any]) -> None:
    jsonschema.validate(document, schema("bench-report"))
    assert {one["key"] for one in document["kpis"]} == set(KPIS)


def test_figures_are_printed_as_they_are_in_the_document(
    out: Path, document: dict[str, Any]
) -> None:
    printed = (out / "printed.txt").read_text()
    for one in document["figures"]:
        kpi = KPIS[one["kpi"]]
        if not kpi.by or not one["of"]:
            assert kpi.unit.write(one["mean"]) in printed, one


def test_the_report_holds_what_the_drafts_ask_for(document: dict[str, Any]) -> None:
    settings = {one["key"] for one in document["settings"]}
    wanted = {"switches.pfc.xoff", "switches.ecn", "switches.routing.kind", "switches.buffer"}
    assert wanted | {"hosts.nic.cc", "hosts.nic.mtu", "hosts.nic.recovery"} <= settings
    assert {"Switch ASIC", "Port speed", "NIC firmware"} <= document["dut"].keys()
    assert [entry["traffic"] for entry in document["workload"]] == ["tokens", "drives"]
    assert len(document["iterations"]) == 2


def test_settings_of_the_other_fabric_are_left_out() -> None:
    found = emu.bench_report(STORAGE, set={"fabric": "ib"}, clock="virtual").document
    keys = {one["key"].split(".")[1] for one in found["settings"] if "switches" in one["key"]}
    assert not keys & {"pfc", "ecn", "buffer", "alpha"}
    assert "credits" in keys


def test_each_run_has_a_folder(out: Path) -> None:
    folders = {path.parent.relative_to(out).as_posix() for path in out.rglob("summary.json")}
    runs = ("run", "alone-tokens", "alone-drives")
    assert folders == {f"seed-{seed}/{name}" for seed in (11, 12) for name in runs}


def test_json_is_all_of_stdout(tmp_path: Path) -> None:
    printed = bench_report(PAIR, "--json", "--out", tmp_path)
    assert json.loads(printed.stdout)["name"] == "pair"
    assert printed.stdout == (tmp_path / "bench-report.json").read_text()


def test_the_page_needs_no_network(out: Path) -> None:
    page = (out / "bench-report.html").read_text()
    assert not re.search(r"<script|<link|https?://|url\(", page)
    for heading in ("Device under test", "The fabric", "Results", "Anomalies", "Definitions"):
        assert heading in page


def test_a_missed_target_fails_nothing(document: dict[str, Any]) -> None:
    (ratio,) = [one for one in document["figures"] if one["kpi"] == "jct_ratio"]
    assert ratio["mark"] == "above 1.15"


def test_a_failed_check_of_the_spec_is_an_anomaly(tmp_path: Path) -> None:
    checks = "verify=[{finish: {flow: flow, by: 1us}}]"
    printed = bench_report(PAIR, "--set", checks, "--out", tmp_path)
    assert printed.exit_code == ExitCode.CHECK_FAILED
    assert "Anomaly: check failed: " in printed.stdout


def test_wrong_specs_and_folders_start_nothing(tmp_path: Path) -> None:
    wrong = bench_report(PAIR, "--set", "switches.pfx=on", "--out", tmp_path / "out")
    assert wrong.exit_code != 0
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    assert bench_report(PAIR, "--out", tmp_path / "file").exit_code != 0


def synthetic(**recorded: Any) -> Trial:
    scenario = spec()
    return Trial(run(record(scenario, ends_ns=ENDS, **recorded), scenario))


def test_inconclusive_iterations_have_no_figures() -> None:
    trials = [synthetic(fidelity=INCONCLUSIVE), synthetic(seed=8)]
    bench = Bench(trials[0], tuple(map(Iteration.of, trials)))
    assert bench.exit_code == ExitCode.INCONCLUSIVE
    assert all([*one.values] == [8] for one in bench.statistics)
    assert "1 of 2 iterations inconclusive" in bench_page(bench)
    assert json.loads(bench_document(bench))["iterations"][0]["conclusive"] is False


def test_a_benchmark_without_any_result_says_so() -> None:
    trial = synthetic(fidelity=INCONCLUSIVE)
    bench = Bench(trial, (Iteration.of(trial),))
    assert not any(table.rows for table in result_tables(bench))
    assert "INCONCLUSIVE" in bench_page(bench)


def test_a_script_gets_figures_as_frames() -> None:
    found = emu.bench_report(PAIR, clock="virtual")
    own = found.figures[found.figures["kpi"] == "latency_p99"]
    assert own["of"].tolist() == ["flow"]
    assert own["unit"].tolist() == ["ns"]
    assert own["mean"].tolist() == [found.mean("latency_p99", "flow")]
    assert "busbw" in {*found.undefined["kpi"]}
    assert found.page().is_file()
    assert str(found).startswith("pair: benchmark report")
    assert "iframe" in found._repr_html_()


def test_a_kpi_without_a_value_is_an_error_with_its_reason() -> None:
    found = emu.bench_report(PAIR, clock="virtual")
    with pytest.raises(UsageError, match="it is no collective"):
        found.mean("busbw", "flow")
    with pytest.raises(UsageError, match="has no value"):
        found.mean("nonsense")
