"""A fabric of four configurations: two ToRs with two servers each, and two leaf routers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from emu.cli.main import cli
from emu.spec.model import Spec, load_spec
from tests.support.sonic_configs import two_tiers, write
from tests.support.sonic_round_trips import imported, spec_of


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The spec that the command writes."""
    folder = tmp_path_factory.mktemp("fabric")
    write(folder / "configs", two_tiers())
    target = folder / "fabric.emu.yml"
    done = CliRunner().invoke(cli, ["import", "sonic", str(folder / "configs"), "-o", str(target)])
    assert done.exit_code == 0, done.output
    return target


@pytest.fixture(scope="module")
def spec(file: Path) -> Spec:
    return load_spec(file)


def test_each_cable_is_there_once(spec: Spec) -> None:
    topology = spec.topology.build()
    joined = sorted(sorted((cable.a.node, cable.b.node)) for cable in topology.cables)
    uplinks = [[leaf, spine] for leaf in ("leaf1", "leaf2") for spine in ("spine1", "spine2")]
    servers = [["h1", "leaf1"], ["h2", "leaf1"], ["h3", "leaf2"], ["h4", "leaf2"]]
    assert joined == sorted(servers + uplinks)


def test_switches_of_a_role_share_their_settings(spec: Spec) -> None:
    assert set(spec.switches.roles) == {"leaf", "spine"}
    assert spec.switches.nodes == {}
    for name in spec.topology.build().switch:
        assert spec.shared_pool(name) == 4580864


def test_devices_have_their_own_names(spec: Spec) -> None:
    assert spec.devices["leaf2"].name == "str-tor-2"
    assert spec.devices["leaf2"].ports["spine1"] == "Ethernet112"
    assert spec.devices["spine1"].ports == {"leaf1": "Ethernet0", "leaf2": "Ethernet4"}
    assert spec.devices["leaf1"].file == "str-tor-1/config_db.json"


def test_an_imported_spec_is_valid_without_warnings(file: Path) -> None:
    done = CliRunner().invoke(cli, ["validate", str(file)])
    assert done.exit_code == 0, done.output
    assert done.stderr == ""


def test_an_imported_spec_runs_its_starter_traffic(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["run", str(file), "--clock", "virtual", "--quiet", "--json", "--out", str(out)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert [flow["completed"] for flow in summary["flows"]] == [True] * 4


def test_an_incast_over_the_spines_loses_nothing(file: Path, tmp_path: Path) -> None:
    """PFC of the imported settings holds, at both lengths of cables, without congestion control."""
    traffic = "traffic=[{name: incast, pattern: incast, from: h2-h4, to: h1, size: 8MB}]"
    words = ["run", str(file), "--clock", "virtual", "--quiet", "--json"]
    words += ["--set", traffic, "--set", "hosts.nic.cc=none", "--out", str(tmp_path / "out")]
    summary = json.loads(CliRunner().invoke(cli, words).stdout)
    assert summary["totals"]["pause_frames"] > 0
    assert summary["totals"]["drops_lossless"] == 0
    assert all(flow["completed"] for flow in summary["flows"])


def test_bgp_takes_the_numbers_of_autonomous_systems(tmp_path: Path) -> None:
    spec = spec_of(imported(tmp_path, two_tiers(), bgp=True).data)
    numbers = {name: spec.switch(name).routing.bgp.asn for name in spec.topology.build().switch}
    assert numbers == {"leaf1": 65100, "leaf2": 65101, "spine1": 65000, "spine2": 65000}
    assert spec.has_bgp


def test_a_row_at_one_end_is_enough_for_a_cable(tmp_path: Path) -> None:
    configs = two_tiers()
    del configs["str-leaf-1"]["DEVICE_NEIGHBOR"]["Ethernet0"]
    result = imported(tmp_path, configs)
    assert len(result.spec.topology.build().cables) == 8
    texts = {str(line.row): line.text for line in result.report.lines}
    row = "str-tor-1/config_db.json: DEVICE_NEIGHBOR|Ethernet112"
    assert "has no DEVICE_NEIGHBOR|Ethernet0" in texts[row]


def test_two_cables_between_two_switches_keep_their_ports(tmp_path: Path) -> None:
    configs = two_tiers()
    tor, leaf = configs["str-tor-1"], configs["str-leaf-1"]
    for config, port, far, name in (
        (tor, "Ethernet120", "Ethernet8", "str-leaf-1"),
        (leaf, "Ethernet8", "Ethernet120", "str-tor-1"),
    ):
        config["PORT"][port] = {"speed": "100000", "mtu": "9100", "admin_status": "up"}
        config["DEVICE_NEIGHBOR"][port] = {"name": name, "port": far}
        config["CABLE_LENGTH"]["AZURE"][port] = "40m"
    spec = imported(tmp_path, configs).spec
    assert spec.devices["leaf1"].ports["spine1#2"] == "Ethernet120"
    assert spec.devices["spine1"].ports["leaf1#2"] == "Ethernet8"


def test_a_server_with_two_cables_is_two_hosts(tmp_path: Path) -> None:
    configs = two_tiers()
    configs["str-tor-2"]["DEVICE_NEIGHBOR"]["Ethernet0"] = {"name": "Servers0", "port": "eth1"}
    configs["str-tor-2"]["DEVICE_NEIGHBOR_METADATA"]["Servers0"] = {"type": "Server"}
    spec = imported(tmp_path, configs).spec
    assert [spec.devices[host].name for host in ("h1", "h3")] == ["Servers0", "Servers0"]
    assert spec.devices["h3"].ports == {"leaf2": "eth1"}


def test_a_port_that_is_down_has_no_cable(tmp_path: Path) -> None:
    configs = two_tiers()
    configs["str-tor-1"]["PORT"]["Ethernet4"]["admin_status"] = "down"
    result = imported(tmp_path, configs)
    assert len(result.spec.topology.build().hosts) == 3
    texts = {str(line.row): line.text for line in result.report.lines}
    assert "is down" in texts["str-tor-1/config_db.json: DEVICE_NEIGHBOR|Ethernet4"]
