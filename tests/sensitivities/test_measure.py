"""Whole measurements on workers: tables, files, what is kept, and mistakes of users."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest
from click.testing import CliRunner

import emu
from emu.cli.main import cli
from emu.errors import ExitCode, SpecError, UsageError
from emu.explain.results_schema import schema
from emu.sensitivities.tables import shared_table
from tests.support.waiting import eventually

pytest.importorskip("distributed", reason="needs Dask (emu[sweep])")
pytest.importorskip("pyarrow", reason="needs pyarrow (emu[sweep])")

pytestmark = pytest.mark.timeout(300)
SPEC = """
name: two
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches: {buffer: 400KB, pfc: {}, ecn: {kmin: 20KB, kmax: 60KB}}
hosts: {nic: {cc: dcqcn-nvidia}}
traffic: [{name: in, pattern: incast, from: h2-h4, to: h1, size: 256KB}]
payload: elided
compare:
  marked: {verify: [{completed: all}, {lossless: {priority: 3}}]}
  ib: {fabric: ib, hosts: {nic: {cc: none}}}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sensitivity") / "two.emu.yml"
    path.write_text(SPEC)
    return path


@pytest.fixture(scope="module")
def measured(file: Path) -> emu.Sensitivity:
    return emu.sensitivity(file, variants=["marked", "ib"], workers=2, out=file.parent / "out")


@pytest.fixture(scope="module")
def document(measured: emu.Sensitivity) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((measured.folder / "sensitivity.json").read_text())
    jsonschema.validate(read, schema("sensitivity"))
    return read


def test_a_cost_is_the_difference_of_two_runs_of_the_spec(
    measured: emu.Sensitivity, file: Path
) -> None:
    """On InfiniBand nothing is random here, so one seed by `emu.run` is all of them."""
    costs = measured.costs
    row = costs[(costs["fabric"] == "ib") & (costs["change"] == "slow receiver")].iloc[0]
    own = {"fabric": "ib", "hosts.nic.cc": "none"}
    slow = own | {"faults": [{"slow-receiver": {"host": "h1", "rate": "50Gbit"}}]}
    before, after = (
        int(emu.run(file, set=keys, clock="virtual").flows["end_ns"].max()) for keys in (own, slow)
    )
    assert row["share"] == pytest.approx(after / before - 1)
    assert row["differs"]


def test_each_fabric_has_its_own_changes(measured: emu.Sensitivity) -> None:
    of = {name: set(own) for name, own in measured.costs.groupby("fabric")["change"]}
    assert "switches.ecn.kmin x 2" in of["marked"] - of["ib"]
    assert "switches.credits.buffer x 1/2" in of["ib"] - of["marked"]
    assert {"link down", "slow receiver", "link fails"} <= of["marked"] & of["ib"]


def test_small_headroom_loses_packets_and_fails_the_check(document: dict[str, Any]) -> None:
    own = next(
        each for each in document["fabrics"][0]["changes"] if each["name"] == "small headroom"
    )
    assert own["counts"]["dropped_packets"]["difference"]["differs"]
    assert own["counts"]["retransmitted_packets"]["difference"]["mean"] > 0
    assert "failed checks: up to 1, in 5 of 5 seeds" in own["remarks"]


def test_changes_are_sorted_by_cost(document: dict[str, Any]) -> None:
    for fabric in document["fabrics"]:
        shown = [
            (
                -own["stuck_seeds"],
                -max([0, *(s["mean"] for s in own["shares"].values() if s and s["differs"])]),
            )
            for own in fabric["changes"]
        ]
        assert shown == sorted(shown)


def test_every_change_is_in_the_page_and_the_document(
    measured: emu.Sensitivity, document: dict[str, Any]
) -> None:
    assert document["schema"] == "emu.sensitivity/1"
    assert (document["failed"], document["missing"]) == (0, 0)
    page = measured.page().read_text()
    for fabric in document["fabrics"]:
        for own in (*fabric["changes"], *fabric["left_out"]):
            assert own["name"] in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_left_out_changes_have_reasons(measured: emu.Sensitivity) -> None:
    left = measured.left_out.set_index(["fabric", "change"])["reason"]
    assert "lane 0" in left["ib", "wrong SL"]
    assert (left.str.len() > 0).all()


def test_the_summary_names_the_threshold_and_the_worst(measured: emu.Sensitivity) -> None:
    text = str(measured)
    assert "changes cost more than 5 %" in text
    assert "The worst is" in text
    assert "The lists of changes differ" in text


def test_changes_of_all_fabrics_stand_side_by_side(measured: emu.Sensitivity) -> None:
    table = shared_table(measured._measured)
    names = [row[0].text for row in table.rows]
    assert {
        "slow receiver",
        "link down",
        "link fails",
        "switch fails",
        "hosts.nic.timeout x 2",
    } == set(names) - {"hosts.nic.timeout x 1/2"}
    assert [column.name for column in table.columns] == ["change", "marked", "ib"]


def test_runs_in_the_folder_are_not_done_again(measured: emu.Sensitivity, file: Path) -> None:
    again = emu.sensitivity(file, variants=["marked", "ib"], out=measured.folder)
    read = json.loads((again.folder / "sensitivity.json").read_text())
    assert read["computed"] == 0
    pd.testing.assert_frame_equal(again.costs, measured.costs)


def test_the_command_prints_the_document_alone(measured: emu.Sensitivity, file: Path) -> None:
    words = ["sensitivity", str(file), "--variants", "marked,ib", "--json", "--quiet"]
    done = CliRunner().invoke(cli, [*words, "--out", str(measured.folder)])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["fabrics"][1]["name"] == "ib"
    assert "what each change costs" in done.stderr


def test_all_mistakes_are_found_at_once(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        emu.sensitivity(file, variants=["markd"], fabrics=["rose"], workers=0, out=tmp_path / "out")
    text = str(caught.value)
    assert "leave one of them out" in text
    assert "fabrics: there is no fabric 'rose'" in text
    assert "did you mean 'marked'" in text
    assert "workers: 0 is less than 1" in text
    assert not (tmp_path / "out").exists()


def test_a_fabric_that_the_spec_cannot_have_is_an_error(file: Path) -> None:
    faults = [{"ignored-cnps": {"host": "h2"}}]
    with pytest.raises(SpecError, match="this is for RoCE's CNPs"):
        emu.sensitivity(file, set={"faults": faults}, fabrics=["roce", "ib"])


def test_traffic_within_servers_alone_is_an_error() -> None:
    spec = emu.Spec(
        topology={"kind": "leaf-spine", "spines": 1, "leaves": 1, "hosts_per_leaf": 2},
        hosts={"gpus": 2},
        traffic=[{"name": "a", "pattern": "pair", "from": "h1", "to": "h2", "size": "1KB"}],
    )
    with pytest.raises(UsageError, match="no traffic crosses the fabric"):
        emu.sensitivity(spec)


def test_a_measurement_that_is_ended_shows_what_it_has_and_goes_on(
    file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ["sensitivity", str(file), "--variants", "ib", "--seeds", "20", "--workers", "2"]
    words = [sys.executable, "-m", "emu.cli.main", *words, "--out", str(out), "--quiet"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rows = out / "runs"
    eventually(lambda: rows.exists() and len(list(rows.glob("*.parquet"))) >= 24)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED, errors
    read = json.loads((out / "sensitivity.json").read_text())
    assert read["missing"] > 0
    assert "missing. Start it again to go on." in (out / "sensitivity.html").read_text()
    again = emu.sensitivity(file, variants=["ib"], seeds=5, workers=2, out=out)
    done = json.loads((again.folder / "sensitivity.json").read_text())
    assert done["missing"] == 0
    assert done["computed"] < 5 * len(done["fabrics"][0]["changes"])


def test_few_seeds_show_no_difference(file: Path) -> None:
    text = str(emu.sensitivity(file, variants=["ib"], seeds=1, workers=2))
    assert "No difference can be shown: it takes 5 seeds" in text
    assert "cost more" not in text
