"""`emu.run`, `emu.load` and `emu.Spec`: what a script gets, and the errors for its mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import emu
from emu.errors import EmuError, SpecError, UsageError
from emu.wire.inspect import inspect

INCAST = Path(__file__).parents[2] / "topologies/incast.emu.yml"
KEYS = {
    "name": "two",
    "topology": {"kind": "leaf-spine", "spines": 1, "leaves": 2, "hosts_per_leaf": 2},
    "switches": {"pfc": {}},
    "traffic": [{"name": "two", "pattern": "incast", "from": "h2-h3", "to": "h1", "size": "256KB"}],
    "capture": ["leaf1:h1"],
    "verify": [{"lossless": {"priority": 3}}],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> emu.Run:
    return emu.run(INCAST, clock="virtual", out=tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def document(run: emu.Run) -> dict[str, object]:
    """The summary that `emu run --json` prints."""
    read: dict[str, object] = json.loads((run.folder / "summary.json").read_text())
    return read


def test_flows_are_those_of_the_summary(run: emu.Run, document: dict[str, object]) -> None:
    flows = document["flows"]
    assert isinstance(flows, list)
    listed = pd.DataFrame(flows).set_index("name")
    for column in listed.columns:
        assert run.flows[column].tolist() == listed[column].tolist(), column
    assert (run.flows["took_ns"] == run.flows["end_ns"] - run.flows["start_ns"]).all()


@pytest.mark.parametrize("place", ["ports", "hosts"])
def test_counters_are_those_of_the_summary(
    run: emu.Run, document: dict[str, object], place: str
) -> None:
    counted = document[place]
    assert isinstance(counted, dict)
    frame = getattr(run, place)
    assert {name: {k: v for k, v in row.items() if v} for name, row in counted.items()} == {
        str(name): {str(k): int(v) for k, v in row.items() if v} for name, row in frame.iterrows()
    }
    assert frame.attrs["units"].keys() == set(frame.columns)


def test_totals_are_those_of_the_summary(run: emu.Run, document: dict[str, object]) -> None:
    assert run.totals.to_dict() == document["totals"]


def test_delivered_bytes_of_all_samples_end_with_those_of_the_flows(run: emu.Run) -> None:
    delivered = run.series("delivered")
    assert delivered.columns.name == "flow_bytes"
    assert delivered.index.name == "time_ns"
    assert delivered.iloc[-1].to_dict() == run.flows["delivered_bytes"].to_dict()


def test_packets_of_a_capture_are_those_that_inspect_counts(run: emu.Run) -> None:
    packets = run.capture("leaf1:h1")
    (file,) = run.folder.glob("leaf1-h1.*")
    assert len(packets) == inspect(file).frames
    times = [packet.time for packet in packets]
    assert times == sorted(times)
    assert 0 < times[-1] < 1


def test_a_run_that_is_read_back_is_equal(run: emu.Run) -> None:
    again = emu.load(run.folder)
    for table in ("flows", "fct", "ports", "hosts", "checks"):
        pd.testing.assert_frame_equal(getattr(again, table), getattr(run, table))
    pd.testing.assert_frame_equal(again.series("queue"), run.series("queue"))
    assert again.spec == run.spec
    assert again.diagnoses == run.diagnoses


def test_a_run_of_emu_run_is_read_back(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "emu.cli.main", "run", str(INCAST), "--clock", "virtual"]
    subprocess.run([*command, "--quiet", "--out", str(tmp_path)], check=True, capture_output=True)
    assert emu.load(tmp_path).flows["completed"].all()


def test_keys_of_a_spec_file_make_a_spec_without_one() -> None:
    run = emu.run(emu.Spec(**KEYS), clock="virtual")
    assert list(run.flows.index) == ["two.h2-h1", "two.h3-h1"]
    assert run.checks["passed"].tolist() == [True]
    assert run.page().exists()


def test_files_of_a_run_without_a_folder_go_with_it() -> None:
    run = emu.run(emu.Spec(**KEYS), clock="virtual")
    folder = run.folder
    assert folder.exists()
    del run
    assert not folder.exists()


def test_settings_change_the_spec_and_leave_the_given_one() -> None:
    spec = emu.Spec(**KEYS)
    run = emu.run(spec, set={"traffic.two.size": "64KB", "seed": 5}, clock="virtual")
    assert run.flows["bytes"].tolist() == [64_000, 64_000]
    assert run.spec.seed == 5
    assert spec == emu.Spec(**KEYS)


def test_an_unfinished_flow_has_no_end() -> None:
    run = emu.run(emu.Spec(**KEYS), set={"time_limit": "10us"}, clock="virtual")
    assert run.flows["end_ns"].isna().all()
    assert run.flows["took_ns"].isna().all()
    assert not run.flows["completed"].any()


def test_background_load_has_fct_slowdowns() -> None:
    traffic = [
        {
            "name": "load",
            "pattern": "background",
            "among": "all",
            "sizes": "websearch",
            "rate": "30Gbit",
            "count": 20,
            "connections": 4,
        }
    ]
    keys = {**KEYS, "traffic": traffic, "time_limit": "1ms"}
    run = emu.run(emu.Spec(**keys), clock="virtual")
    finished = run.fct[run.fct["end_ns"].notna()]
    assert len(finished)
    assert (finished["fct_slowdown"] >= 0.99).all()
    assert run.fct["end_ns"].isna().equals(run.fct["fct_slowdown"].isna())


def test_the_flow_model_has_no_counters() -> None:
    run = emu.run(emu.Spec(**KEYS), model="flow")
    assert run.flows["completed"].all()
    assert run.flows["retransmitted_packets"].isna().all()
    assert run.ports.empty
    assert run.hosts.empty


def test_jupyter_shows_the_page(run: emu.Run) -> None:
    shown = run._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "incast" in shown


def test_a_mistake_in_a_spec_names_all_mistakes() -> None:
    with pytest.raises(SpecError) as error:
        emu.Spec(topology={"kind": "leaf-spine", "spine": 2, "leaves": 1, "hosts_per_leaf": 2})
    assert "topology.spine: unknown key (did you mean 'spines'?)" in str(error.value)
    assert "topology.spines: is missing" in str(error.value)


def test_a_setting_of_an_unknown_key_is_refused() -> None:
    with pytest.raises(
        SpecError, match=r"switches\.ecn\.kmn: unknown key \(did you mean 'kmin'\?\)"
    ):
        emu.run(emu.Spec(**KEYS), set={"switches.ecn.kmn": "50KB"}, clock="virtual")


def test_unknown_series_captures_and_clocks_are_refused(run: emu.Run) -> None:
    with pytest.raises(UsageError, match="did you mean 'queue'"):
        run.series("queues")
    with pytest.raises(UsageError, match="no capture of port 'leaf1:h9'"):
        run.capture("leaf1:h9")
    with pytest.raises(UsageError, match="no clock 'simulated'"):
        emu.run(INCAST, clock="simulated")


def test_a_spec_without_traffic_has_no_flows() -> None:
    run = emu.run(emu.Spec(topology=KEYS["topology"]), clock="virtual")
    assert run.flows.empty
    assert "goodput_bps" in run.flows.columns


def test_the_flow_model_knows_no_queues_and_no_clock() -> None:
    run = emu.run(emu.Spec(**KEYS), model="flow")
    assert len(run.series("delivered"))
    with pytest.raises(UsageError, match="the flow model does not know it"):
        run.series("queue")
    with pytest.raises(UsageError, match="the flow model has no clock"):
        emu.run(emu.Spec(**KEYS), model="flow", clock="virtual")


def test_seed_is_that_of_the_run() -> None:
    assert emu.run(emu.Spec(**KEYS), seed=4, clock="virtual").spec.seed == 4
    both = emu.run(emu.Spec(**KEYS), seed=4, set={"time_limit": "10us"}, clock="virtual")
    assert (both.spec.seed, both.spec.time_limit_ps) == (4, 10_000_000)


def test_numbers_of_numpy_are_numbers() -> None:
    run = emu.run(emu.Spec(**KEYS), set={"seed": np.int64(3)}, clock="virtual")
    assert run.spec.seed == 3
    assert emu.Spec(**{**KEYS, "seed": np.int64(3)}) == run.spec


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"clock": None}, "clock: there is no clock 'None'"),
        ({"model": "flows"}, "model: there is no model 'flows' \\(did you mean 'flow'"),
        ({"set": ["seed=3"]}, "set: is no mapping"),
        ({"threads": 0}, "threads: 0 is not a whole number from 1 to 256"),
        ({"threads": "2"}, "threads: '2' is not a whole number"),
        ({"out": ""}, "out: is empty"),
        ({"out": "/proc/none"}, "nothing can be written there"),
        ({"out": __file__}, "nothing can be written there"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        emu.run(emu.Spec(**KEYS), **{"clock": "virtual", **parameters})


@pytest.mark.parametrize("spec", [KEYS, 5, None])
def test_what_is_no_spec_is_refused(spec: Any) -> None:
    with pytest.raises(UsageError, match=r"emu\.Spec"):
        emu.run(spec)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmuError, match="not the recording of a run"):
        emu.load(tmp_path)


def test_a_summary_of_another_version_is_refused(run: emu.Run, tmp_path: Path) -> None:
    for name in ("summary.json", "series.npz", "spec.json"):
        (tmp_path / name).write_bytes((run.folder / name).read_bytes())
    text = (tmp_path / "summary.json").read_text()
    (tmp_path / "summary.json").write_text(text.replace('"emu.summary/', '"emu.summary/9', 1))
    with pytest.raises(EmuError, match="schema"):
        emu.load(tmp_path)


def test_importing_emu_imports_no_tables() -> None:
    """Commands start quickly: pandas is imported when a script asks for a run."""
    code = "import emu, sys; assert 'Spec' in dir(emu); print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
