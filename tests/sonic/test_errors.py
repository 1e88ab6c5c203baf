"""Wrong configurations: each mistake names file, table, key and field, and all are reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from emu.errors import ExitCode, SpecError, UsageError
from emu.sonic.mapping import import_folder
from tests.support.sonic_configs import two_tiers, whole_example, write

Change = Callable[[dict[str, Any]], object]


def put(*path: str, value: Any) -> Change:
    """A change of a configuration: the value at a path of keys."""

    def change(config: dict[str, Any]) -> None:
        *above, last = path
        for key in above:
            config = config[key]
        config[last] = value

    return change


MISTAKES: dict[str, tuple[Change, str]] = {
    "speed": (
        put("PORT", "Ethernet0", "speed", value="fast"),
        "PORT|Ethernet0|speed: 'fast' is not a whole number from 1 to 10000000",
    ),
    "no-speed": (
        lambda config: config["PORT"]["Ethernet0"].pop("speed"),
        "PORT|Ethernet0|speed: is missing; give it in Mbit/s, e.g. 100000",
    ),
    "mtu": (
        put("PORT", "Ethernet4", "mtu", value="67"),
        "PORT|Ethernet4|mtu: '67' is not a whole number from 68 to 9216",
    ),
    "dynamic_th": (
        put("BUFFER_PROFILE", "q_lossy_profile", "dynamic_th", value="9"),
        "BUFFER_PROFILE|q_lossy_profile|dynamic_th: '9' is not a whole number from -8 to 8",
    ),
    "dscp": (
        put("DSCP_TO_TC_MAP", "AZURE", "64", value="1"),
        "DSCP_TO_TC_MAP|AZURE|64: '64' is not a whole number from 0 to 63",
    ),
    "class": (
        put("DSCP_TO_TC_MAP", "AZURE", "63", value="8"),
        "DSCP_TO_TC_MAP|AZURE|63: '8' is not a whole number from 0 to 7",
    ),
    "probability": (
        put("WRED_PROFILE", "AZURE_LOSSLESS", "green_drop_probability", value="101"),
        "WRED_PROFILE|AZURE_LOSSLESS|green_drop_probability: '101' is not a whole number from 0 "
        "to 100",
    ),
    "priorities": (
        put("PORT_QOS_MAP", "Ethernet0", "pfc_enable", value="3,8"),
        "PORT_QOS_MAP|Ethernet0|pfc_enable: '3,8' is not a list of priorities from 0 to 7 like 3,4",
    ),
    "length": (
        put("CABLE_LENGTH", "AZURE", "Ethernet0", value="5"),
        "CABLE_LENGTH|AZURE|Ethernet0: '5' is not a length in whole metres like 40m",
    ),
    "length-of-no-port": (
        put("CABLE_LENGTH", "AZURE", "Ethernet8", value="5m"),
        "CABLE_LENGTH|AZURE|Ethernet8: there is no PORT|Ethernet8; add it, or take this field out",
    ),
    "scheduler": (
        put("SCHEDULER", "scheduler.0", "type", value="RR"),
        "SCHEDULER|scheduler.0|type: 'RR' is not one of DWRR, WRR, STRICT",
    ),
    "watchdog": (
        put("PFC_WD", "Ethernet4", "detection_time", value="20"),
        "PFC_WD|Ethernet4|detection_time: '20' is not a whole number from 100 to 5000",
    ),
    "map": (
        put("PORT_QOS_MAP", "Ethernet0", "dscp_to_tc_map", value="AZUR"),
        "PORT_QOS_MAP|Ethernet0|dscp_to_tc_map: there is no DSCP_TO_TC_MAP|AZUR (there is AZURE); "
        "add it, or name another",
    ),
    "profile": (
        put("BUFFER_PG", "Ethernet0|3-4", "profile", value="[BUFFER_PROFILE|none]"),
        "BUFFER_PG|Ethernet0|3-4|profile: there is no BUFFER_PROFILE|none",
    ),
    "pool": (
        put("BUFFER_PROFILE", "q_lossy_profile", "pool", value="a|b"),
        "BUFFER_PROFILE|q_lossy_profile|pool: 'a|b' is not the name of a row of BUFFER_POOL",
    ),
    "unknown-port": (
        put("BUFFER_PG", "Ethernet8|3-4", value={"profile": "ingress_lossy_profile"}),
        "BUFFER_PG|Ethernet8|3-4: there is no PORT|Ethernet8; add it, or take this row out",
    ),
    "group-twice": (
        put("BUFFER_PG", "Ethernet0|4", value={"profile": "ingress_lossy_profile"}),
        "BUFFER_PG|Ethernet0|4: Ethernet0|4 has a row already, Ethernet0|3-4; keep one of them",
    ),
    "range": (
        put("BUFFER_PG", "Ethernet0|7-8", value={"profile": "ingress_lossy_profile"}),
        "BUFFER_PG|Ethernet0|7-8: '7-8' is not a number or range from 0 to 7 like 3-4",
    ),
    "key": (
        put("QUEUE", "Ethernet0", value={"scheduler": "scheduler.0"}),
        "QUEUE|Ethernet0: a key of this table is PORT|NUMBER, e.g. Ethernet0|3-4",
    ),
    "table": (
        put("BUFFER_PROFLIE", value={}),
        "BUFFER_PROFLIE: there is no such table (did you mean 'BUFFER_PROFILE'?)",
    ),
    "field": (
        put("BUFFER_PROFILE", "q_lossy_profile", "dynamic_thr", value="3"),
        "BUFFER_PROFILE|q_lossy_profile|dynamic_thr: there is no such field (did you mean "
        "'dynamic_th'?)",
    ),
    "row": (
        put("PORT", "Ethernet0", value="100000"),
        "PORT|Ethernet0: must be an object of fields",
    ),
    "rows": (put("PORT", value=["Ethernet0"]), "PORT: must be an object of rows by key"),
    "value": (
        put("PORT", "Ethernet0", "mtu", value=None),
        "PORT|Ethernet0|mtu: must be text",
    ),
    "neighbour-of-no-port": (
        put("DEVICE_NEIGHBOR", "Ethernet8", value={"name": "Servers1", "port": "eth0"}),
        "DEVICE_NEIGHBOR|Ethernet8: there is no PORT|Ethernet8; add it, or take this row out",
    ),
    "nameless-neighbour": (
        put("DEVICE_NEIGHBOR", "Ethernet0", value={"port": "eth0"}),
        "DEVICE_NEIGHBOR|Ethernet0|name: is missing; name the device at the other end",
    ),
    "same-neighbour": (
        put("DEVICE_NEIGHBOR", "Ethernet4", value={"name": "Servers0", "port": "eth0"}),
        "DEVICE_NEIGHBOR|Ethernet4: Servers0 eth0 has a cable already, to leaf1 Ethernet0; a port "
        "has one neighbour",
    ),
    "itself": (
        put("DEVICE_NEIGHBOR", "Ethernet0", "name", value="leaf1"),
        "DEVICE_NEIGHBOR|Ethernet0|name: a cable of a switch to itself is not emulated",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_place(name: str, tmp_path: Path) -> None:
    change, expected = MISTAKES[name]
    config: dict[str, Any] = deepcopy(whole_example())
    change(config)
    with pytest.raises(SpecError) as caught:
        import_folder(write(tmp_path, {"leaf1": config}))
    assert any(
        line.startswith(f"leaf1/config_db.json: {expected}") for line in caught.value.findings
    ), caught.value.findings
    assert caught.value.exit_code is ExitCode.USAGE


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    config: dict[str, Any] = deepcopy(whole_example())
    for name in ("speed", "dscp", "map", "range"):
        MISTAKES[name][0](config)
    with pytest.raises(SpecError) as caught:
        import_folder(write(tmp_path, {"leaf1": config, "leaf2": {"PORT": []}}))
    assert len(caught.value.findings) == 5


def _fabric(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> list[str]:
    """The findings about the fabric of two tiers after a change."""
    configs = two_tiers()
    change(configs)
    with pytest.raises(SpecError) as caught:
        import_folder(write(tmp_path, configs, flat=True))
    return caught.value.findings


def test_ends_that_disagree_are_both_named(tmp_path: Path) -> None:
    path = ("str-leaf-1", "DEVICE_NEIGHBOR", "Ethernet0", "port")
    findings = _fabric(tmp_path, put(*path, value="Ethernet116"))
    assert any(
        "DEVICE_NEIGHBOR|Ethernet112: says str-leaf-1 Ethernet0, and str-leaf-1.json: "
        "DEVICE_NEIGHBOR|Ethernet0 says str-tor-1 Ethernet116; correct one of them" in line
        for line in findings
    )


def test_a_far_port_must_exist(tmp_path: Path) -> None:
    path = ("str-tor-1", "DEVICE_NEIGHBOR", "Ethernet112", "port")
    findings = _fabric(tmp_path, put(*path, value="Ethernet64"))
    assert any("there is no PORT|Ethernet64 in str-leaf-1.json" in line for line in findings)


def test_both_ends_have_one_speed(tmp_path: Path) -> None:
    path = ("str-leaf-2", "PORT", "Ethernet4", "speed")
    findings = _fabric(tmp_path, put(*path, value="40000"))
    assert any("both ends of a cable have one speed" in line for line in findings)
    assert any("40Gbit" in line and "100Gbit" in line for line in findings)


def test_a_device_has_one_type(tmp_path: Path) -> None:
    path = ("str-tor-2", "DEVICE_NEIGHBOR_METADATA", "str-leaf-1", "type")
    findings = _fabric(tmp_path, put(*path, value="Server"))
    assert findings == [
        "str-tor-2.json: DEVICE_NEIGHBOR_METADATA|str-leaf-1|type: str-leaf-1 is a Server here and "
        "a LeafRouter in str-leaf-1.json: DEVICE_METADATA|localhost|type; a device has one type"
    ]


def test_two_switches_have_two_names(tmp_path: Path) -> None:
    path = ("str-tor-2", "DEVICE_METADATA", "localhost", "hostname")
    findings = _fabric(tmp_path, put(*path, value="str-tor-1"))
    assert findings == [
        "str-tor-2.json: DEVICE_METADATA|localhost|hostname: 'str-tor-1' is the name of "
        "str-tor-1.json, too; give each switch its own"
    ]


def test_a_fabric_needs_cables(tmp_path: Path) -> None:
    config = deepcopy(whole_example())
    del config["DEVICE_NEIGHBOR"]
    with pytest.raises(SpecError, match="no port has a neighbour"):
        import_folder(write(tmp_path, {"leaf1": config}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "leaf1.json:1:2: is not JSON: Expecting property name"),
        ('{"PORT": {}', "leaf1.json:1:12: is not JSON"),
        ("[]", "leaf1.json: is no CONFIG_DB"),
        ("{}", "no port has a neighbour"),
        ('{"FEATURE": {}}', "leaf1.json: has none of the tables of a CONFIG_DB"),
        ('{"PORT": {}, "PORT": {}}', "leaf1.json: PORT: is there twice; keep one of them"),
        (
            '{"PORT": {"Ethernet0": {"mtu": "1", "mtu": "2"}}}',
            "leaf1.json: PORT|Ethernet0|mtu: is there twice; keep one of them",
        ),
        ("[" * 100_000, "leaf1.json: is not JSON: it is nested too deep"),
        ('{"PORT": {"Ethernet0": {"mtu": 1.5}}}', "leaf1.json: PORT|Ethernet0|mtu: must be text"),
    ],
)
def test_a_text_that_is_no_configuration(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "leaf1.json").write_text(text)
    with pytest.raises(SpecError) as caught:
        import_folder(tmp_path)
    assert any(expected in line for line in caught.value.findings), caught.value.findings


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "leaf1.json").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(SpecError, match=r"leaf1\.json: is not JSON: it is not text"):
        import_folder(tmp_path)


@pytest.mark.parametrize(("name", "why"), [("", "has no configuration"), ("none", "No such file")])
def test_a_folder_without_files_is_a_usage_error(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        import_folder(tmp_path / name)


def test_a_folder_with_a_configuration_is_one_switch(tmp_path: Path) -> None:
    """As /etc/sonic, which has other JSON files beside it."""
    (tmp_path / "copp_cfg.json").write_text('{"COPP_GROUP": {}}')
    (tmp_path / "config_db.json").write_text(json.dumps(whole_example()))
    spec = import_folder(tmp_path).spec
    assert spec.devices["leaf1"].file == "config_db.json"


def test_what_real_files_have_is_no_mistake(tmp_path: Path) -> None:
    """No BGP, queues for multicast, tables and fields of other subjects, and lists."""
    config: dict[str, Any] = deepcopy(whole_example())
    config["DEVICE_METADATA"]["localhost"] |= {"bgp_asn": "None", "mac": "00:00:00:00:00:01"}
    config["QUEUE"]["Ethernet0|8-15"] = {"scheduler": "scheduler.0"}
    config["PORT"]["Ethernet0"]["adv_speeds"] = ["100000", "50000"]
    config["PORT_QOS_MAP"]["Ethernet0"]["dscp_to_fc_map"] = "AZURE"
    config["BGP_NEIGHBOR_AF"] = {"default|10.0.0.1|ipv4_unicast": {"admin_status": "true"}}
    config["BGP_NEIGHBOR"] = {"10.0.0.1": {"asn": "65200", "name": "ARISTA01T1"}}
    config["INTERFACE"] = {"Ethernet4|10.0.0.0/31": {}, "Ethernet4": {}}
    config["VLAN_SUB_INTERFACE"] = {"Ethernet4.10": {"admin_status": "up"}}
    config["FLEX_COUNTER_TABLE"] = {"PFCWD": {"FLEX_COUNTER_STATUS": "enable"}}
    report = import_folder(write(tmp_path, {"leaf1": config})).report
    noted = {line.row.table for line in report.lines}
    assert noted >= {"BGP_NEIGHBOR_AF", "BGP_NEIGHBOR", "INTERFACE", "VLAN_SUB_INTERFACE"}


def test_a_number_is_as_good_as_its_text(tmp_path: Path) -> None:
    """Some programs write numbers where SONiC writes text."""
    config: dict[str, Any] = deepcopy(whole_example())
    config["PORT"]["Ethernet0"]["speed"] = 100000
    assert import_folder(write(tmp_path, {"leaf1": config})).spec.devices["leaf1"].model
