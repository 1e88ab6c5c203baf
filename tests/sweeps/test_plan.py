"""The runs of a sweep: their keys, their order, and keys of the spec that do not exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import emu
from emu.errors import SpecError
from emu.report.run_figures import run_figures
from emu.report.run_view import RunFacts
from emu.runtime import runner_on
from emu.spec.model import Spec, load_spec
from emu.sweeps import plan as plan_module
from emu.sweeps.plan import Plan, key_of, plan
from emu.sweeps.points import Settings
from emu.sweeps.work import spec_at

INCAST = load_spec(Path(__file__).parents[2] / "topologies/incast.emu.yml")
POINTS: list[Settings] = [{"switches.ecn.kmin": size} for size in ("20KB", "50KB")]


def made(points: list[Settings] = POINTS, spec: Spec = INCAST, **changed: Any) -> Plan:
    wanted: dict[str, Any] = {
        "variants": [],
        "seeds": [7],
        "model": "packets",
        "tables": (),
        "option": "--vary",
    }
    return plan(spec, points, **wanted | changed)


def keys(own: Plan) -> set[str]:
    return {run.key for run in own.runs}


def test_the_same_sweep_has_the_same_keys() -> None:
    assert keys(made()) == keys(made())


@pytest.mark.parametrize(
    "other",
    [
        {"points": [{"switches.ecn.kmin": "60KB"}]},
        {"seeds": [8]},
        {"model": "flow"},
        {"variants": ["roce-mistuned"]},
        {"spec": INCAST.model_copy(update={"time_limit_ps": 10**9})},
    ],
    ids=lambda other: next(iter(other)),
)
def test_all_that_decides_the_result_is_in_the_key(other: dict[str, Any]) -> None:
    assert not keys(made()) & keys(made(**other))


def test_version_and_core_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of("{}", {}, "packets")
    monkeypatch.setattr(emu, "__version__", "9.9.9")
    other_version = key_of("{}", {}, "packets")
    monkeypatch.undo()
    monkeypatch.setattr(plan_module, "_core_digest", lambda: "another")
    assert len({before, other_version, key_of("{}", {}, "packets")}) == 3


@pytest.mark.parametrize(
    "named",
    [
        {"traffic": [{"name": "trace", "file": "FILE"}]},
        {"recorded_routes": "FILE"},
        {"switches": {"nodes": {"leaf1": {"routing": {"bgp": {"frr_conf": "FILE"}}}}}},
    ],
    ids=["trace", "routes", "frr.conf"],
)
def test_files_that_the_spec_names_are_in_the_key(named: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "named"
    base = json.dumps(named).replace("FILE", str(file))
    found = set()
    for text in ("one", "other"):
        file.write_text(text)
        found.add(key_of(base, {}, "packets"))
    assert len(found) == 2


def test_the_same_point_twice_is_one_run() -> None:
    assert len(made([POINTS[0], POINTS[0]]).runs) == 1


def test_all_points_have_the_first_seed_first() -> None:
    own = made(variants=["roce-pfc", "ib"], seeds=[7, 8])
    assert [run.seed for run in own.runs] == [7] * 4 + [8] * 4
    assert [run.point for run in own.runs] == [0, 1, 2, 3] * 2
    assert [run.variant for run in own.runs[:2]] == ["roce-pfc", "ib"]


def test_a_point_chooses_its_variant_and_its_seed() -> None:
    (run,) = made([{"variant": "ib", "seed": 3}]).runs
    assert (run.variant, run.seed, run.settings) == ("ib", 3, {})


def test_unknown_keys_start_nothing_and_are_all_named() -> None:
    with pytest.raises(SpecError) as caught:
        made([{"switches.ecn.kmn": "20KB", "hosts.nic.cd": "none"}])
    assert len(caught.value.findings) == 2
    assert "did you mean 'kmin'?" in str(caught.value)
    assert str(caught.value).startswith("--vary")


def test_a_bad_value_among_others_starts_the_sweep() -> None:
    assert len(made([*POINTS, {"switches.ecn.kmin": "5OKB"}]).runs) == 3


def test_what_only_the_real_clock_runs_is_refused() -> None:
    tcp = load_spec(Path(__file__).parents[2] / "topologies/tcp-baseline.emu.yml")
    with pytest.raises(SpecError, match="run it on the real"):
        made([{}], tcp, variants=["tcp"])


@pytest.mark.parametrize("variant", ["roce-lossy", "roce-dcqcn", "ib"])
def test_left_out_bytes_and_captures_change_no_figure(variant: str, tmp_path: Path) -> None:
    """A sweep leaves both out, as they take most of the time."""
    own = made([{}], variants=[variant], seeds=[7])
    task = own.task(own.runs[0])
    bare = spec_at(task.spec, task.settings, "")
    assert (bare.payload, bare.capture) == ("elided", ())
    whole = INCAST.variants()[variant]
    figures = []
    for spec in (bare, whole):
        recording = runner_on("virtual").run(spec, out=tmp_path)
        facts = RunFacts("run", recording, spec, spec.topology.build())
        figures.append({figure.column: figure.value for figure in run_figures(facts)})
    assert figures[0] == figures[1]


def test_bytes_that_a_spec_asks_for_stay() -> None:
    real = INCAST.model_copy(update={"payload": "real"})
    own = made([{}], real)
    assert spec_at(own.task(own.runs[0]).spec, {}, "").payload == "real"
