"""Whole searches on two workers: what they find, what they refuse, and how they go on."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import emu
from emu.errors import ExitCode, HostError, SpecError, UsageError
from emu.explain.results_schema import schema
from tests.support.waiting import eventually

pytest.importorskip("distributed", reason="needs Dask (emu[sweep])")
pytest.importorskip("optuna", reason="needs Optuna (emu[sweep])")

pytestmark = pytest.mark.timeout(300)
SPEC = """
name: two
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 3}
switches: {pfc: {}, ecn: {kmax: 100KB, pmax: 20%}}
hosts: {nic: {cc: dcqcn}}
traffic: [{name: two, pattern: incast, from: h2-h3, to: h1, size: 1MB}]
verify: [{completed: all}]
"""
KMIN, RAI = "switches.ecn.kmin", "hosts.nic.dcqcn.rai"
CHOICES = {KMIN: ["2KB", "20KB", "80KB"], RAI: ["10Mbit", "4Gbit"]}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "two.emu.yml"
    file.write_text(SPEC)
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tune")
    (made / "two.emu.yml").write_text(SPEC)
    return made


def search(folder: Path, **further: Any) -> emu.Tuning:
    wanted: dict[str, Any] = {
        "minimise": "last_completion",
        "seeds": 2,
        "trials": 14,
        "held_out": 5,
        "loads": [1.2],
        "workers": 2,
        "out": folder / "further",
    } | further
    return emu.tune(folder / "two.emu.yml", wanted.pop("vary", CHOICES), **wanted)


@pytest.fixture(scope="module")
def tuned(folder: Path) -> emu.Tuning:
    return search(folder, out=folder / "out")


def test_the_winner_is_the_best_of_a_sweep_over_all_points(
    tuned: emu.Tuning, tmp_path: Path
) -> None:
    """The sweep tries each of the six points; the search proposes those it likes."""
    swept = emu.sweep(tuned.folder.parent / "two.emu.yml", CHOICES, seeds=2, workers=2)
    means = swept.mean()
    best = means["last_completion_ns"].min()
    assert tuned.winner is not None
    own = tuned.trials[tuned.trials["how"] == "complete"]["last_completion"].min()
    assert own == best
    again = emu.run(tuned.folder.parent / "two.emu.yml", set=tuned.winner, clock="virtual")
    assert again.flows["end_ns"].max() <= best * 1.1


def test_held_out_runs_have_other_seeds_and_other_loads(tuned: emu.Tuning) -> None:
    held_out = tuned.held_out
    assert sorted(held_out["seed"].unique()) == [3, 4, 5, 6, 7]
    assert sorted(held_out["load"].unique()) == [1, 1.2]
    assert list(held_out["settings"].unique()) == [
        *("winner", "defaults", "nvidia", "sonic", "cisco", "dctcp")
    ]


def test_the_page_needs_no_network_and_says_the_winner(tuned: emu.Tuning) -> None:
    page = tuned.page().read_text()
    assert "http" not in page
    assert "--set switches.ecn.kmin=" in page
    assert "Held-out seeds, load x 1.2: traffic.two.size 1200KB" in page
    assert "What mattered for last_completion" in page


def test_the_key_that_matters_is_the_important_one(tuned: emu.Tuning) -> None:
    """The messages end before a rate is increased, so its step changes nothing."""
    assert list(tuned.importances()) == [KMIN, RAI]


def test_the_same_command_goes_on_with_the_study(tuned: emu.Tuning, folder: Path) -> None:
    document = json.loads((tuned.folder / "tune.json").read_text())
    jsonschema.validate(document, schema("tune"))
    again = search(folder, out=tuned.folder, trials=16)
    assert again.trials["last_completion"].iloc[:14].equals(tuned.trials["last_completion"])
    assert len(again.trials) == 16
    assert json.loads((tuned.folder / "tune.json").read_text())["study"] == document["study"]


def test_a_finished_search_computes_nothing(tuned: emu.Tuning, folder: Path) -> None:
    search(folder, out=tuned.folder, trials=14)
    assert json.loads((tuned.folder / "tune.json").read_text())["computed"] == 0


def test_a_key_that_changes_nothing_is_refused(folder: Path) -> None:
    """Nothing is lost here, so no timeout is better than another."""
    found = search(folder, vary={"hosts.nic.timeout": [14, 15]}, trials=2)
    assert found.winner is not None
    assert not found.accepted
    assert any("is not shown to be better than defaults" in own for own in found.reasons)


def test_a_constraint_that_nothing_keeps_has_no_winner(folder: Path) -> None:
    found = search(folder, trials=3, subject_to=["last_completion<=1us"])
    assert found.winner is None
    assert set(found.trials["how"]) == {"broken"}
    assert (found.trials["seeds"] == 1).all(), "further seeds cannot mend it"
    assert "no trial kept last_completion &lt;= 1 us" in found.page().read_text()


def test_several_goals_have_a_front(folder: Path) -> None:
    found = search(folder, minimise=["last_completion", "deepest_queue_bytes"], trials=8)
    front = found.trials[found.trials["front"]]
    assert len(front) >= 1
    assert "Pareto front: minimise last_completion and minimise deepest_queue_bytes" in (
        found.page().read_text()
    )


def test_a_range_is_chosen_for_a_key_alone(folder: Path) -> None:
    found = search(folder, vary=[KMIN], trials=4)
    assert "2 packets to min(limit / 2" in found.page().read_text()


def has_rows(folder: Path, count: int) -> bool:
    """Whether that many runs are over; gives it ten seconds."""
    with suppress(AssertionError):
        eventually(lambda: folder.exists() and len(list(folder.glob("*.parquet"))) >= count)
        return True
    return False


def command(spec: Path, out: Path, *words: str) -> list[str]:
    own = [sys.executable, "-m", "emu.cli.main", "tune", str(spec), "--workers", "2"]
    own += ["--vary", "switches.ecn.kmin=2KB..80KB", "--minimise", "last_completion"]
    return [*own, "--held-out", "5", "--loads", "none", "--out", str(out), "--json", *words]


def test_a_killed_search_goes_on(spec: Path, tmp_path: Path) -> None:
    """SIGKILL in the middle; no run that is over is done again, and no trial is lost."""
    out = tmp_path / "out"
    words = command(spec, out, "--trials", "12", "--seeds", "3")
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rows = out / "runs"
    while not has_rows(rows, 8):
        assert process.poll() is None
    process.kill()
    process.wait()
    before = {file: file.stat().st_mtime_ns for file in rows.glob("*.parquet")}
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode in (ExitCode.OK, ExitCode.CHECK_FAILED), ran.stderr
    document = json.loads(ran.stdout)
    assert len(document["trials"]) == 12
    assert {file: file.stat().st_mtime_ns for file in before} == before
    settings = [json.dumps(own["settings"]) for own in document["trials"]]
    assert len(set(settings)) > 8


def test_the_command_exits_with_1_if_it_refuses(spec: Path, tmp_path: Path) -> None:
    words = command(spec, tmp_path / "out", "--trials", "2", "--subject-to", "last_completion<=1us")
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == ExitCode.CHECK_FAILED
    assert "No winner: no trial kept last_completion <= 1 us" in ran.stderr
    document = json.loads(ran.stdout)
    jsonschema.validate(document, schema("tune"))
    assert document["winner"] is None


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"vary": {}}, "vary: name a key at least"),
        ({"minimise": []}, "minimise: name a goal at least"),
        ({"maximise": "last_completion"}, "is a goal twice"),
        ({"vary": {"seed": [1, 2]}}, "a seed is no setting"),
        ({"vary": {KMIN: ["1KB"]}}, "has fewer than two values"),
        ({"vary": ["hosts.nic.mtu"]}, r"vary hosts\.nic\.mtu=LOW\.\.HIGH"),
        ({"held_out": 3}, "held_out: 3 seeds are too few"),
        ({"loads": [1]}, "loads: 1 is no other load"),
        ({"workers": 1, "scheduler": "tcp://x"}, "workers: a cluster has its own"),
        ({"minimise": "last_completio"}, r"did you mean 'last_completion_ns'"),
        ({"subject_to": "pause_frames"}, "is no constraint"),
        ({"model": "flows"}, "did you mean 'flow'"),
    ],
)
def test_mistakes_are_named(folder: Path, wanted: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        search(folder, **wanted)


def test_an_unknown_key_starts_nothing(spec: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="did you mean 'kmin'"):
        emu.tune(spec, {"switches.ecn.kmn": ["1KB", "2KB"]}, minimise="cnp", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_mistakes_of_options_and_of_the_spec_are_named_at_once(folder: Path) -> None:
    with pytest.raises(UsageError) as error:
        search(folder, vary={"switches.ecn.kmn": ["1KB", "2KB"]}, held_out=2)
    assert "held_out: 2 seeds are too few" in str(error.value)
    assert "did you mean 'kmin'" in str(error.value)


def test_missing_packages_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch, spec: Path) -> None:
    from emu.sweeps import needs

    monkeypatch.setattr(needs, "PACKAGES", ("no_such_package",))
    with pytest.raises(HostError, match=r"tuning needs no_such_package; .*'\.\[sweep\]'"):
        emu.tune(spec, {KMIN: None}, minimise="cnp")
