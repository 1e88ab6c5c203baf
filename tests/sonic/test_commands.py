"""`emu import sonic` and `emu export sonic` as commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from emu.cli.main import cli
from emu.errors import UsageError
from emu.spec.model import load_spec, spec_from_text
from tests.support.sonic_configs import two_tiers, whole_example, write
from tests.support.sonic_round_trips import tables


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    return write(tmp_path / "configs", two_tiers())


def test_the_spec_is_alone_on_stdout(configs: Path) -> None:
    done = run("import", "sonic", configs)
    assert done.exit_code == 0
    spec = spec_from_text(done.stdout.encode(), source="fabric.emu.yml")
    assert len(spec.topology.build().hosts) == 4
    assert "traffic: starter" in done.stderr
    assert "approximated  TC_TO_PRIORITY_GROUP_MAP|AZURE|0-2, 5-6" in done.stderr


def test_a_report_file_has_a_line_for_each_row(configs: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.txt"
    assert run("import", "sonic", configs, "--report", report).exit_code == 0
    lines = report.read_text().splitlines()
    row = "str-tor-1/config_db.json: PORT|Ethernet0|speed: taken: topology.links rate"
    assert row in lines
    assert len(lines) > 700


def test_an_existing_file_stays_unless_forced(configs: Path, tmp_path: Path) -> None:
    target = tmp_path / "fabric.emu.yml"
    target.write_text("mine")
    done = run("import", "sonic", configs, "-o", target)
    assert isinstance(done.exception, UsageError)
    assert target.read_text() == "mine"
    assert run("import", "sonic", configs, "-o", target, "--force").exit_code == 0
    assert load_spec(target).devices


def test_a_mistake_leaves_no_spec(tmp_path: Path) -> None:
    config = whole_example()
    config["PORT"]["Ethernet0"]["speed"] = "fast"
    target = tmp_path / "fabric.emu.yml"
    done = run("import", "sonic", write(tmp_path / "configs", {"leaf1": config}), "-o", target)
    assert done.exit_code != 0
    assert not target.exists()


def test_an_export_writes_the_files_that_were_imported(configs: Path, tmp_path: Path) -> None:
    target, folder = tmp_path / "fabric.emu.yml", tmp_path / "out"
    run("import", "sonic", configs, "-o", target)
    done = run("export", "sonic", target, folder)
    assert done.exit_code == 0
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.json"))
    assert names == sorted(f"{name}/config_db.json" for name in two_tiers())
    port = tables(folder, "str-tor-1/config_db.json")["PORT"]["Ethernet0"]
    assert port == {"speed": "100000", "mtu": "9100", "admin_status": "up"}


def test_a_setting_reaches_the_export(configs: Path, tmp_path: Path) -> None:
    """An import, another threshold, an export: what a user does to try a threshold on a switch."""
    target, folder = tmp_path / "fabric.emu.yml", tmp_path / "out"
    run("import", "sonic", configs, "-o", target)
    queues = "switches.roles.leaf.ecn.queues"
    words = ["--set", f"{queues}.3.kmin=500KB", "--set", f"{queues}.4=off"]
    assert run("export", "sonic", target, folder, *words).exit_code == 0
    found = tables(folder, "str-tor-1/config_db.json")
    assert found["WRED_PROFILE"]["AZURE_LOSSLESS"]["green_min_threshold"] == "500000"
    assert "wred_profile" not in found["QUEUE"]["Ethernet0|4"]
    other = tables(folder, "str-leaf-1/config_db.json")
    assert other["WRED_PROFILE"]["AZURE_LOSSLESS"]["green_min_threshold"] == "1048576"


def test_an_export_overwrites_nothing_unless_forced(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    (folder / "leaf1").mkdir(parents=True)
    (folder / "leaf1/config_db.json").write_text("mine")
    done = run("export", "sonic", "topologies/incast.emu.yml", folder)
    assert isinstance(done.exception, UsageError)
    assert [path.name for path in folder.rglob("*.json")] == ["config_db.json"]
    assert run("export", "sonic", "topologies/incast.emu.yml", folder, "--force").exit_code == 0
    assert "PORT" in tables(folder, "leaf1/config_db.json")


def test_switches_without_a_file_are_named(tmp_path: Path) -> None:
    target = tmp_path / "fabric.emu.yml"
    run("import", "sonic", write(tmp_path / "configs", {"leaf1": whole_example()}), "-o", target)
    done = run("export", "sonic", target, tmp_path / "out")
    assert "not written, since devices.NAME.file is not given: spine1" in done.stderr


def test_infiniband_has_no_sonic(tmp_path: Path) -> None:
    done = run("export", "sonic", "topologies/pair.emu.yml", tmp_path, "--set", "fabric=ib")
    assert isinstance(done.exception, UsageError)
    assert "Ethernet" in str(done.exception)
