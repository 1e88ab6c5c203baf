"""The report of an import: every row is in it, and what has no counterpart has its reason."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from emu.imports.report import Outcome, Report, Row, ranges
from tests.support.sonic_configs import contrast, two_tiers, whole_example
from tests.support.sonic_round_trips import imported

Outcomes = dict[str, tuple[str, str]]


def outcomes(folder: Path, config: Any) -> Outcomes:
    """Each row of one switch -> its outcome and the text."""
    report = imported(folder, {"leaf1": config}).report
    return {line.row.path: (line.outcome.value, line.text) for line in report.lines}


@pytest.mark.parametrize("configs", [{"leaf1": whole_example()}, {"a": contrast()}, two_tiers()])
def test_every_row_is_in_the_report(configs: Any, tmp_path: Path) -> None:
    for config in configs.values():
        config["FEATURE"] = {"lldp": {"state": "enabled"}}
        config["SOME_TABLE"] = {"a": {"b": "c"}}
        config["PORT"]["Ethernet0"]["new_field"] = "1"
    report = imported(tmp_path, configs).report
    known = {(line.row.file, line.row.path) for line in report.lines}
    for name, config in configs.items():
        for table, rows in config.items():
            for key, fields in rows.items():
                for field in fields:
                    file = f"{name}/config_db.json"
                    assert {(file, f"{table}|{key}|{field}"), (file, table)} & known


@pytest.mark.parametrize(
    ("row", "outcome", "text"),
    [
        ("TC_TO_PRIORITY_GROUP_MAP|AZURE|1", "approximated", "lossy classes share group 0"),
        ("BUFFER_PG|Ethernet0,Ethernet4|0|profile", "ignored", "limits lossy packets at egress"),
        ("BUFFER_POOL|ingress_lossy_pool|size", "ignored", "one ingress pool"),
        ("BUFFER_POOL|egress_lossless_pool|size", "ignored", "limits nothing"),
        ("BUFFER_PROFILE|egress_lossless_profile|dynamic_th", "ignored", "limits nothing"),
        ("WRED_PROFILE|AZURE_LOSSLESS|red_min_threshold", "ignored", "no colour"),
        ("BUFFER_PROFILE|q_lossy_profile|pool", "approximated", "one pool"),
        ("DEVICE_NEIGHBOR|Ethernet4|name", "approximated", "ARISTA01T1 has no file"),
        ("PFC_WD|Ethernet0", "approximated", "watches all ports"),
        ("PORT|Ethernet0|lanes", "ignored", "no lanes"),
    ],
)
def test_what_has_no_counterpart_has_its_reason(
    row: str, outcome: str, text: str, tmp_path: Path
) -> None:
    found = outcomes(tmp_path, whole_example())
    assert found[row][0] == outcome
    assert text in found[row][1]


def test_trimming_and_shaping_are_named(tmp_path: Path) -> None:
    config = deepcopy(whole_example())
    config["BUFFER_PROFILE"]["q_lossy_profile"]["packet_discard_action"] = "trim"
    config["SCHEDULER"]["scheduler.0"]["pir"] = "1250000000"
    config["SWITCH_TRIMMING"] = {"GLOBAL": {"size": "256"}}
    found = outcomes(tmp_path, config)
    assert found["BUFFER_PROFILE|q_lossy_profile|packet_discard_action"] == (
        "ignored",
        "emu's switches drop packets whole",
    )
    assert found["SCHEDULER|scheduler.0|pir"] == ("ignored", "emu's queues are not shaped")
    assert found["SWITCH_TRIMMING"][0] == "ignored"


def test_profiles_that_the_switch_makes_are_computed(tmp_path: Path) -> None:
    """A file from before, and the dynamic model: PG 3-4 are missing, or NULL."""
    config = deepcopy(whole_example())
    del config["BUFFER_PG"]["Ethernet0|3-4"]
    config["BUFFER_PG"]["Ethernet4|3-4"]["profile"] = "NULL"
    config["DEFAULT_LOSSLESS_BUFFER_PARAMETER"] = {"AZURE": {"default_dynamic_th": "-1"}}
    result = imported(tmp_path, {"leaf1": config})
    topology = result.spec.topology.build()
    for port in topology.ports["leaf1"]:
        pfc = result.spec.port(port).pfc
        assert pfc is not None
        assert pfc.xoff.alpha == 0.5
        assert pfc.headroom_bytes is not None
        assert pfc.headroom_bytes > 30_000
    found = {line.row.path: line.outcome for line in result.report.lines}
    assert found["BUFFER_PG|Ethernet0|3"] is Outcome.APPROXIMATED
    assert found["BUFFER_PG|Ethernet4|3-4"] is Outcome.APPROXIMATED


def test_pools_of_unknown_size_have_a_real_switch_s(tmp_path: Path) -> None:
    config = deepcopy(whole_example())
    del config["BUFFER_POOL"]["ingress_lossless_pool"]["size"]
    result = imported(tmp_path, {"leaf1": config})
    assert result.spec.shared_pool("leaf1") == 32_000_000
    assert any("32MB" in line.text for line in result.report.lines)


def test_a_port_that_differs_has_its_own_settings(tmp_path: Path) -> None:
    """PFC off at the uplink, and another queue that marks."""
    config = deepcopy(whole_example())
    del config["PORT_QOS_MAP"]["Ethernet4"]["pfc_enable"]
    config["QUEUE"]["Ethernet4|7"] = {"wred_profile": "AZURE_LOSSLESS"}
    spec = imported(tmp_path, {"leaf1": config}).spec
    ports = spec.topology.build().port_named
    assert spec.port(ports["leaf1:spine1"]).pfc is None
    assert spec.port(ports["leaf1:h1"]).pfc is not None
    ecn = [spec.port(ports[name]).ecn for name in ("leaf1:h1", "leaf1:spine1")]
    assert [own is not None and own.curve(7) is not None for own in ecn] == [False, True]


def test_lossy_queues_have_the_limit_of_most(tmp_path: Path) -> None:
    config = deepcopy(whole_example())
    config["BUFFER_PROFILE"]["small"] = {"pool": "egress_lossy_pool", "static_th": "100000"}
    config["BUFFER_QUEUE"]["Ethernet0|7"] = {"profile": "small"}
    result = imported(tmp_path, {"leaf1": config})
    assert result.spec.switch("leaf1").alpha == 8.0
    found = {line.row.path: line for line in result.report.lines}
    assert "that of most" in found["BUFFER_QUEUE|Ethernet0|7|profile"].text


def test_dscps_that_are_not_listed_have_class_0(tmp_path: Path) -> None:
    config = deepcopy(whole_example())
    config["DSCP_TO_TC_MAP"]["AZURE"] = {"3": "3", "4": "4"}
    result = imported(tmp_path, {"leaf1": config})
    classes = result.spec.switch("leaf1").classes
    assert [classes.priority_of_dscp(dscp) for dscp in (0, 3, 4, 26, 48)] == [0, 3, 4, 0, 0]
    assert any("62 DSCPs are not listed" in line.text for line in result.report.lines)


@pytest.mark.parametrize(
    "changes",
    [{"ecn": "ecn_none"}, {"ecn": "ecn_yellow_red"}, {"wred_green_enable": "false"}],
)
def test_a_profile_that_does_not_mark_green_is_ignored(
    changes: dict[str, str], tmp_path: Path
) -> None:
    """WRED drops packets then, which emu's switches never do early."""
    config = deepcopy(whole_example())
    config["WRED_PROFILE"]["AZURE_LOSSLESS"] |= changes
    result = imported(tmp_path, {"leaf1": config})
    assert result.spec.switch("leaf1").ecn is None
    found = {line.row.path: line for line in result.report.lines}
    row = found["QUEUE|Ethernet0,Ethernet4|3-4|wred_profile"]
    assert row.outcome is Outcome.IGNORED
    assert "never drop early" in row.text


def test_strict_queues_and_wrr(tmp_path: Path) -> None:
    config = deepcopy(whole_example())
    config["SCHEDULER"] = {
        "scheduler.0": {"type": "WRR", "weight": "14"},
        "scheduler.1": {"type": "STRICT"},
    }
    result = imported(tmp_path, {"leaf1": config})
    scheduling = result.spec.switch("leaf1").scheduling
    assert scheduling.strict == (4, 3)
    assert scheduling.weights == dict.fromkeys((0, 1, 2, 5, 6), 14)
    found = {line.row.path: line for line in result.report.lines}
    assert found["SCHEDULER|scheduler.0|type"].outcome is Outcome.APPROXIMATED
    assert found["SCHEDULER|scheduler.1|type"].outcome is Outcome.TAKEN


def test_static_thresholds_share_the_pool(tmp_path: Path) -> None:
    """Thresholds that a switch may oversubscribe, and a lossy limit as large as the chip."""
    config = deepcopy(whole_example())
    for metres in (5, 40):
        profile = config["BUFFER_PROFILE"][f"pg_lossless_100000_{metres}m_profile"]
        del profile["dynamic_th"]
        profile |= {"static_th": "4000000", "xon_offset": "10000"}
    config["BUFFER_PROFILE"]["q_lossy_profile"] = {
        "pool": "egress_lossy_pool",
        "static_th": "99999999",
    }
    result = imported(tmp_path, {"leaf1": config})
    settings = result.spec.switch("leaf1")
    pfc = settings.pfc
    assert pfc is not None
    assert pfc.xoff.size_bytes == 4580864 // 4
    assert pfc.xon_bytes == 4580864 // 4 - 10000
    assert settings.queue_limit_bytes == settings.buffer_bytes
    found = {line.row.path: line for line in result.report.lines}
    assert "more than the pool" in found["BUFFER_PG|Ethernet0|3-4|profile"].text
    assert found["BUFFER_PROFILE|q_lossy_profile|static_th"].outcome is Outcome.APPROXIMATED


@pytest.mark.parametrize(
    ("of_port", "of_nic"), [(4156, 4096), (4155, 2048), (1500, 1024), (316, 256), (68, 256)]
)
def test_packets_of_nics_fit_into_those_of_ports(of_port: int, of_nic: int, tmp_path: Path) -> None:
    """IPv4, UDP, BTH, RETH and ICRC are 60 bytes beside the payload."""
    config = deepcopy(whole_example())
    config["PORT"]["Ethernet0"]["mtu"] = str(of_port)
    assert imported(tmp_path, {"leaf1": config}).spec.host("h1").nic.mtu == of_nic


def test_a_watchdog_without_a_restoration_time_waits_twice_as_long(tmp_path: Path) -> None:
    """As `pfcwd start` does."""
    config = deepcopy(whole_example())
    del config["PFC_WD"]["Ethernet4"]["restoration_time"]
    result = imported(tmp_path, {"leaf1": config})
    watchdog = result.spec.switch("leaf1").watchdog
    assert watchdog is not None
    assert watchdog.restoration_ps == 2 * watchdog.detection_ps
    texts = {line.row.path: line.text for line in result.report.lines}
    assert texts["PFC_WD|Ethernet4|restoration_time"] == "not given; twice the detection time"


def test_older_references_are_read(tmp_path: Path) -> None:
    config = deepcopy(whole_example())
    config["BUFFER_PG"]["Ethernet0|3-4"]["profile"] = (
        "[BUFFER_PROFILE|pg_lossless_100000_5m_profile]"
    )
    config["PORT_QOS_MAP"]["Ethernet0"]["tc_to_queue_map"] = "[TC_TO_QUEUE_MAP|AZURE]"
    found = outcomes(tmp_path, config)
    assert found["BUFFER_PG|Ethernet0|3-4|profile"][0] == "taken"
    assert found["PORT_QOS_MAP|Ethernet0|tc_to_queue_map"][0] == "taken"


def test_a_port_s_map_goes_before_that_of_all(tmp_path: Path) -> None:
    config = deepcopy(whole_example())
    config["DSCP_TO_TC_MAP"]["ALL3"] = {str(dscp): "3" for dscp in range(64)}
    config["PORT_QOS_MAP"]["global"]["dscp_to_tc_map"] = "ALL3"
    del config["PORT_QOS_MAP"]["Ethernet4"]["dscp_to_tc_map"]
    spec = imported(tmp_path, {"leaf1": config}).spec
    ports = spec.topology.build().port_named
    priorities = [
        spec.port(ports[name]).classes.priority_of_dscp(0) for name in ("leaf1:h1", "leaf1:spine1")
    ]
    assert priorities == [1, 3]


def test_a_shared_headroom_pool_becomes_headroom_of_each_port(tmp_path: Path) -> None:
    """Trident 3: 160000 bytes for each of two ports and two priorities, in place of 1622016 for
    all; the shared pool stays as large as on the switch."""
    result = imported(tmp_path, {"tor": contrast()})
    spec, found = result.spec, {line.row.path: line for line in result.report.lines}
    settings = spec.switch("leaf1")
    assert spec.shared_pool("leaf1") == 32732160
    assert settings.reserved_bytes == 4608
    assert settings.buffer_bytes == 32732160 + 4 * 160000 + 16 * 4608
    assert settings.pfc is not None
    assert (settings.pfc.headroom_bytes, settings.pfc.xon_offset) == (160000, 4608)
    row = found["BUFFER_POOL|ingress_lossless_pool|xoff"]
    assert row.outcome is Outcome.APPROXIMATED
    assert "no shared headroom pool" in row.text
    assert "625KiB in all" in row.text
    assert found["BUFFER_PROFILE|egress_lossless_profile|static_th"].outcome is Outcome.IGNORED


# --- the report itself ---


def test_the_outcome_that_counts_is_the_least_exact() -> None:
    report, row = Report(), Row("a.json", "PORT", "Ethernet0", "speed")
    report.ignored(row, "first")
    report.taken(row, "second")
    report.approximated(row, "third")
    report.taken(row, "fourth")
    assert [str(line) for line in report.lines] == [
        "a.json: PORT|Ethernet0|speed: approximated: third"
    ]


def test_rows_with_one_text_share_a_line() -> None:
    report = Report()
    for dscp in (0, 1, 2, 7):
        report.taken(Row("a.json", "DSCP_TO_TC_MAP", "AZURE", str(dscp)), "classes")
    for file in ("a.json", "b.json"):
        report.ignored(Row(file, "FEATURE"), "other")
    assert list(report.short()) == [
        "a.json: 4 taken, 0 approximated and 1 ignored",
        "b.json: 0 taken, 0 approximated and 1 ignored",
        "a.json:",
        "  taken         DSCP_TO_TC_MAP|AZURE|0-2, 7: classes",
        "a.json and b.json:",
        "  ignored       FEATURE: other",
    ]


def test_ranges_are_of_numbers_alone() -> None:
    assert ranges(["0", "1", "2", "name", "4", "6", "7"]) == "0-2, name, 4, 6-7"
