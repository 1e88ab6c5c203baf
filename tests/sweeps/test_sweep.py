"""Whole sweeps on two workers: results, what is kept, and workers and sweeps that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest

import emu
from emu.errors import ExitCode, FabricError, SpecError, UsageError
from emu.explain.results_schema import schema
from tests.support.waiting import eventually

pytest.importorskip("distributed", reason="needs Dask (emu[sweep])")
pytest.importorskip("pyarrow", reason="needs pyarrow (emu[sweep])")

import dask.config
from distributed import LocalCluster

from emu.sweeps import cluster as cluster_module
from emu.sweeps.cluster import Cluster, cluster, clusters_kept
from emu.sweeps.execute import execute
from emu.sweeps.plan import Plan, plan
from emu.sweeps.work import Outcome, Task, work

pytestmark = pytest.mark.timeout(300)
SPEC = """
name: two
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 3}
switches: {pfc: {}, ecn: {kmin: 20KB, kmax: 100KB, pmax: 20%}}
hosts: {nic: {cc: dcqcn}}
traffic: [{name: two, pattern: incast, from: h2-h3, to: h1, size: 1MB}]
verify: [{completed: all}]
compare:
  marked: {}
  plain: {switches: {ecn: off}, hosts: {nic: {cc: none}}}
"""
KEYS = {"switches.ecn.kmin": ["10KB", "20KB", "40KB"]}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "two.emu.yml"
    file.write_text(SPEC)
    return file


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> emu.Sweep:
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "two.emu.yml").write_text(SPEC)
    return emu.sweep(
        folder / "two.emu.yml",
        KEYS | {"hosts.nic.mtu": [1024, 4096]},
        seeds=3,
        tables=["flows", "ports"],
        workers=2,
        out=folder / "out",
    )


def planned(count: int) -> Plan:
    """Runs of one point with so many seeds."""
    spec = emu.Spec(
        topology={"kind": "leaf-spine", "spines": 1, "leaves": 1, "hosts_per_leaf": 2},
        traffic=[{"name": "one", "pattern": "pair", "from": "h2", "to": "h1", "size": "64KB"}],
    )
    seeds = list(range(count))
    return plan(spec, [{}], variants=[], seeds=seeds, model="packets", tables=(), option="vary")


def test_a_row_is_what_a_run_of_its_point_gives(swept: emu.Sweep) -> None:
    row = swept.runs.iloc[-1]
    settings = {"switches.ecn.kmin": "40KB", "hosts.nic.mtu": 4096, "seed": 3}
    run = emu.run(swept.folder.parent / "two.emu.yml", set=settings, clock="virtual")
    assert row["switches.ecn.kmin_bytes"] == 40_000
    assert row["last_completion_ns"] == run.flows["end_ns"].max()
    assert row["ce_marked"] == run.totals["ce_marked"]
    assert row["deepest_queue_bytes"] == run.series("queue").max().max()
    assert (row["checks"], row["checks_failed"]) == (1, 0)
    flows = swept.flows[swept.flows["key"] == row["key"]]
    assert flows["end_ns"].tolist() == run.flows["end_ns"].tolist()
    ports = swept.ports[swept.ports["key"] == row["key"]].set_index("port")
    for counter in run.ports.columns:
        assert ports[counter].to_dict() == run.ports[counter].to_dict(), counter


def test_every_point_has_a_row_for_each_seed(swept: emu.Sweep) -> None:
    assert swept.runs.groupby("point")["seed"].apply(list).tolist() == [[1, 2, 3]] * 6
    assert len(swept.failed) == 0


def test_parquet_has_the_frame(swept: emu.Sweep) -> None:
    read = pd.read_parquet(swept.folder / "runs.parquet")
    assert read["last_completion_ns"].dtype == "int64"
    assert read["key"].tolist() == swept.runs["key"].tolist()
    singles = pd.read_parquet(swept.folder / "runs")
    assert set(singles["key"]) == set(read["key"])


def test_means_are_over_the_seeds_of_each_point(swept: emu.Sweep) -> None:
    by = ["switches.ecn.kmin_bytes", "hosts.nic.mtu_bytes"]
    mean = swept.mean()
    assert mean[by].equals(swept.mean(by)[by])
    expected = swept.runs.groupby(by)["last_completion_ns"].mean()
    assert mean["last_completion_ns"].tolist() == pytest.approx(expected.tolist())
    assert (mean["runs"] == 3).all()
    assert (mean["last_completion_ns_low"] <= mean["last_completion_ns"]).all()
    assert swept.mean("hosts.nic.mtu_bytes")["runs"].tolist() == [9, 9]
    with pytest.raises(UsageError, match=r"did you mean 'hosts\.nic\.mtu_bytes'"):
        swept.mean("hosts.nic.mtu")


def test_the_page_has_units_and_needs_no_network(swept: emu.Sweep) -> None:
    page = swept.page().read_text()
    assert "last completion (us) over switches.ecn.kmin" in page
    assert "switches.ecn.kmin (KB)" in page
    assert "expanded percentile bootstrap of the mean, 9,999 resamples, level 95%" in page
    assert "Pareto front" in page
    assert "http" not in page
    assert page in swept._repr_html_().replace("&#x27;", "'").replace("&quot;", '"').replace(
        "&lt;", "<"
    ).replace("&gt;", ">").replace("&amp;", "&")


def test_nothing_is_computed_twice(swept: emu.Sweep) -> None:
    again = emu.sweep(
        swept.folder.parent / "two.emu.yml",
        KEYS | {"hosts.nic.mtu": [1024, 4096]},
        seeds=4,
        workers=2,
        out=swept.folder,
    )
    assert "6 computed now" in repr(again)
    known = again.runs[again.runs["seed"] < 4].reset_index(drop=True)
    pd.testing.assert_frame_equal(known, swept.runs)


def test_tables_that_are_missing_are_computed(spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    emu.sweep(spec, workers=1, out=out)
    with pytest.raises(UsageError, match=r"tables=\['flows'\]"):
        _ = emu.sweep(spec, workers=1, out=out).flows
    assert len(emu.sweep(spec, workers=1, out=out, tables=["flows"]).flows) == 2


def test_random_points_have_pictures(spec: Path, tmp_path: Path) -> None:
    vary = {"switches.ecn.kmin": "1KB..40KB", "switches.ecn.kmax": "50KB..200KB"}
    found = emu.sweep(spec, vary, random=30, workers=2, variants=["all"], out=tmp_path / "out")
    assert len(found.runs) == 60
    assert "switches.ecn.kmin (KB)" in found.page().read_text()


def command(spec: Path, out: Path, *words: str) -> list[str]:
    own = [sys.executable, "-m", "emu.cli.main", "sweep", str(spec), "--workers", "2"]
    return [*own, "--out", str(out), "--json", *words]


def test_bad_points_are_rows_and_the_exit_code_says_so(spec: Path, tmp_path: Path) -> None:
    words = ["--vary", "switches.ecn.kmin=20KB,500KB,5OKB", "--variants", "plain,marked"]
    ran = subprocess.run(
        command(spec, tmp_path / "out", *words), capture_output=True, text=True, check=False
    )
    assert ran.returncode == ExitCode.FAILED
    document = json.loads(ran.stdout)
    jsonschema.validate(document, schema("sweep"))
    failed = {
        (row["variant"], row["switches.ecn.kmin"]) for row in document["rows"] if row["error"]
    }
    assert ("marked", "5OKB") in failed
    assert ("marked", "20KB") not in failed
    assert document["failed"] == len(failed)
    assert document["results"]["last_completion_ns"] == "ns"
    assert "is not understood" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_failed_runs_are_tried_again(spec: Path, tmp_path: Path) -> None:
    vary = {"switches.ecn.kmin": ["20KB", "5OKB"]}
    for computed in (2, 1):
        found = emu.sweep(spec, vary, workers=1, out=tmp_path / "out")
        assert f"1 failed, {computed} computed now" in repr(found)


def test_a_killed_sweep_goes_on_and_leaves_no_worker(spec: Path, tmp_path: Path) -> None:
    """SIGKILL in the middle; what was done is neither lost nor done again."""
    out = tmp_path / "out"
    words = command(spec, out, "--seeds", "60")
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rows = out / "runs"
    eventually(lambda: rows.exists() and len(list(rows.glob("*.parquet"))) >= 5)
    workers = children(process.pid)
    process.kill()
    process.wait()
    assert len(workers) == 2
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    before = {file: file.stat().st_mtime_ns for file in rows.glob("*.parquet")}
    assert 5 <= len(before) < 60
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    document = json.loads(ran.stdout)
    assert document["computed"] == 60 - len(before)
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert len(pd.read_parquet(out / "runs.parquet")) == 60


def test_a_sweep_that_is_ended_shows_what_it_has(spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = command(spec, out, "--seeds", "200")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rows = out / "runs"
    eventually(lambda: rows.exists() and len(list(rows.glob("*.parquet"))) >= 5)
    process.send_signal(signal.SIGTERM)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED, errors
    document = json.loads(printed)
    assert document["missing"] == 200 - len(document["rows"]) > 0
    assert "the sweep was stopped" in (out / "sweep.html").read_text()


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def outcomes(made: Plan, do: Callable[[Task], Outcome], on_first: Callable[[Cluster], Any]) -> Any:
    """What comes out of the runs on two workers of their own, and how many workers were started
    anew."""
    found: dict[str, Outcome] = {}
    with clusters_kept(), cluster(None, 2) as used:
        assert used.workers is not None
        for run, outcome in execute(used, made, made.runs, do=do):
            if not found:
                on_first(used)
            found[run.key] = outcome
        return found, used.workers.restarted


def test_a_worker_that_is_killed_costs_its_run_alone() -> None:
    def kill_one(used: Cluster) -> None:
        assert used.workers is not None
        os.kill(used.workers.pids[0], signal.SIGKILL)

    made = planned(100)
    found, restarted = outcomes(made, work, kill_one)
    assert len(found) == 100
    assert [own.error for own in found.values() if own.error] == []
    assert restarted == 1


def test_a_run_that_kills_each_worker_fails_alone() -> None:
    made = planned(12)
    deadly = made.runs[3].key

    def do(task: Task) -> Outcome:
        if task.key == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return Outcome(task.key)

    found, _ = outcomes(made, do, lambda used: None)
    assert [key for key, own in found.items() if own.error] == [deadly]
    assert "each worker that began this run died" in found[deadly].error


def test_runs_beside_one_that_kills_the_worker_do_not_fail(tmp_path: Path) -> None:
    """The scheduler gives them up, too: it cannot know which of them was to blame."""
    made = planned(3)
    deadly, death = made.runs[0].key, tmp_path / "death"

    def do(task: Task) -> Outcome:
        if task.key == deadly:
            death.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        while not death.exists():
            time.sleep(0.001)
        return Outcome(task.key)

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=1, threads_per_worker=3, dashboard_address=None
        ) as existing,
        cluster(existing.scheduler_address, 1) as used,
    ):
        found = {run.key: outcome for run, outcome in execute(used, made, made.runs, do=do)}
    assert len(found) == 3
    assert [key for key, own in found.items() if own.error] == [deadly]


def test_workers_that_cannot_start_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cluster_module._ENVIRONMENT, "PYTHONHOME", "/nowhere")
    with pytest.raises(FabricError, match="workers end as soon as they start"):
        outcomes(planned(1), work, lambda used: None)


def test_an_existing_cluster_is_used(spec: Path, tmp_path: Path) -> None:
    """By its address alone; here it is one of this process."""
    with cluster(None, 1) as used:
        found = emu.sweep(
            spec, KEYS, scheduler=str(used.client.scheduler_info()["address"]), out=tmp_path / "out"
        )
    assert len(found.runs) == 3
    assert not found.failed["error"].any()


def test_a_scheduler_that_dies_ends_the_sweep(spec: Path, tmp_path: Path) -> None:
    """What was done is kept, and no run has failed."""
    out = tmp_path / "out"
    script = (
        "import sys, time; from emu.sweeps.cluster import cluster\n"
        "with cluster(None, 1) as used:\n"
        "    print(used.client.scheduler_info()['address'], flush=True); time.sleep(100)"
    )
    scheduler = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert scheduler.stdout is not None
    address = scheduler.stdout.readline().strip()
    words = [sys.executable, "-m", "emu.cli.main", "sweep", str(spec), "--scheduler", address]
    words += ["--seeds", "1000", "--out", str(out), "--quiet"]
    sweep = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    rows = out / "runs"
    eventually(lambda: rows.exists() and len(list(rows.glob("*.parquet"))) >= 5)
    scheduler.kill()
    scheduler.wait()
    _, errors = sweep.communicate(timeout=120)
    assert sweep.returncode == ExitCode.FAILED
    assert "the Dask scheduler has gone" in errors
    assert "Traceback" not in errors
    read = pd.read_parquet(out / "runs.parquet")
    assert len(read) >= 5
    assert not read["error"].any()


def test_a_scheduler_that_does_not_answer_is_named(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_SECONDS_TO_CONNECT", 0.5)
    with pytest.raises(UsageError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        emu.sweep(spec, scheduler="tcp://127.0.0.1:9", out=tmp_path / "out")


def test_scripts_need_no_main_guard(spec: Path, tmp_path: Path) -> None:
    """Workers do not run the script again."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import emu\nprint('once')\nprint(len(emu.sweep({str(spec)!r}, workers=2).runs))\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert ran.stdout == "once\n1\n"


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"vary": {"switches.ecn.kmin": "1KB..9KB"}}, "vary switches.ecn.kmin: .* or take random"),
        ({"vary": {"seed": [1, 2]}, "seeds": 2}, "seeds: vary has seeds already"),
        ({"vary": {"seed": [1]}, "points": [{"seed": 2}]}, "vary seed: is given twice"),
        ({"vary": {"switches.ecn.kmin": []}}, "has no values"),
        ({"variants": ["plane"]}, r"variants: .*\(did you mean 'plain'"),
        ({"points": [{"variant": "plane"}]}, r"variants: .*\(did you mean 'plain'"),
        ({"tables": ["flow"]}, r"tables: .*\(did you mean 'flows'"),
        ({"workers": 1, "scheduler": "tcp://x"}, "workers: a cluster has its own"),
        ({"random": 5}, "random: takes ranges"),
        ({"seeds": 0}, "seeds: there must be one at least"),
        ({"model": "flows"}, "did you mean 'flow'"),
        ({"results": ["last_completion"]}, "did you mean 'last_completion_ns'"),
    ],
)
def test_mistakes_are_named(spec: Path, wanted: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        emu.sweep(spec, **wanted)


def test_a_key_that_is_unknown_starts_nothing(spec: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="did you mean 'kmin'"):
        emu.sweep(spec, {"switches.ecn.kmn": ["1KB"]}, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_missing_packages_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch, spec: Path) -> None:
    from emu.errors import HostError
    from emu.sweeps import needs

    monkeypatch.setattr(needs, "PACKAGES", ("distributed", "no_such_package"))
    with pytest.raises(HostError, match=r"no_such_package; .*'\.\[sweep\]'"):
        emu.sweep(spec)
