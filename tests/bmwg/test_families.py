"""Families of KPIs on synthetic recordings, whose figures follow from what was put in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from emu.bmwg.catalogue import measure
from emu.bmwg.kpi import Figure
from emu.bmwg.trial import Trial
from emu.measure.records import FaultRecord
from tests.support.synthetic import record, run, spec

LAST_NS = 1_000_000
ENDS = {f"incast.h{n}-h1": LAST_NS for n in range(2, 9)} | {"victim": LAST_NS // 2}
RATE = 8e9 / LAST_NS
"""Bits per second of a byte in the run's time."""


def figures(scenario: Any = None, **recorded: Any) -> dict[tuple[str, str], Figure]:
    """The figures of a synthetic run, by KPI and what they are of."""
    scenario = scenario or spec()
    trial = Trial(run(record(scenario, **{"ends_ns": ENDS, **recorded}), scenario))
    return {figure.place: figure for figure in measure(trial)[0]}


def reasons(scenario: Any = None, **recorded: Any) -> dict[tuple[str, str], str]:
    """The reasons of KPIs without a value, by KPI and what they are of."""
    scenario = scenario or spec()
    trial = Trial(run(record(scenario, **{"ends_ns": ENDS, **recorded}), scenario))
    return {one.place: one.reason for one in measure(trial)[1]}


def test_goodput_is_payload_over_the_time_of_the_trial() -> None:
    assert figures()["fabric_goodput", ""].value == pytest.approx(8_000_000 * RATE)


def test_an_unfinished_flow_counts_with_what_it_delivered() -> None:
    ends = {**ENDS, "victim": None}
    recorded = record(spec(), ends_ns=ends)
    flows = tuple(
        replace(flow, delivered_bytes=250_000) if flow.end_ns is None else flow
        for flow in recorded.flows
    )
    found = figures(ends_ns=ends, flows=flows)["fabric_goodput", ""].value
    assert found == pytest.approx(7_250_000 * 8e9 / LAST_NS)


def test_drop_rate_is_in_parts_of_a_million_packets() -> None:
    totals = {"packets": 4_000, "drops_lossy": 3, "drops_fault": 1}
    found = figures(totals=totals)["packet_drop_rate", ""]
    assert found.value == pytest.approx(1_000)
    assert "1 of them by faults" in found.detail


def test_retransmissions_and_disorder_are_rates() -> None:
    totals = {"packets": 4_000, "retransmitted_packets": 7}
    hosts = {"h1": {"out_of_sequence": 5}, "h2": {"out_of_sequence": 6}}
    found = figures(totals=totals, hosts=hosts)
    assert found["retransmission_rate", ""].value == pytest.approx(7_000)
    assert found["out_of_order_rate", ""].value == pytest.approx(11_000)


def test_marking_ratio_is_of_the_fabric_and_of_each_marking_port() -> None:
    scenario = spec(switches={"ecn": "on"})
    ports = {
        "leaf1:h1": {"tx_prio3_packets": 200, "tx_prio3_ecn_marked": 50},
        "leaf1:h2": {"tx_prio3_packets": 100},
    }
    found = figures(scenario, totals={"packets": 1_000, "ce_marked": 50}, ports=ports)
    assert found["ecn_marking_ratio", ""].value == pytest.approx(5)
    assert found["ecn_marking_ratio", "leaf1:h1 priority 3"].value == pytest.approx(25)
    assert ("ecn_marking_ratio", "leaf1:h2 priority 3") not in found


def test_pauses_are_counted_where_sent_and_timed_where_obeyed() -> None:
    scenario = spec(switches={"pfc": {"priorities": [3, 4]}})
    ports = {
        "leaf1:spine1": {"tx_prio3_pause": 40, "tx_prio4_pause": 2},
        "spine1:leaf1": {"rx_prio3_pause_duration": 250, "rx_prio4_pause_duration": 300},
    }
    found = figures(scenario, totals={"packets": 1, "pause_frames": 42}, ports=ports)
    assert found["pfc_pause_count", ""].value == pytest.approx(42_000)
    assert found["pfc_pause_count", "leaf1:spine1 priority 3"].value == pytest.approx(40_000)
    assert found["pfc_pause_duration", "spine1:leaf1 priority 3"].value == 250_000
    longest = found["pfc_pause_duration", ""]
    assert (longest.value, longest.detail) == (300_000, "spine1:leaf1 priority 4")


def test_without_pfc_there_are_no_pause_figures() -> None:
    found = reasons()
    assert found["pfc_pause_count", ""].startswith("PFC is off")
    assert found["pfc_pause_duration", ""].startswith("PFC is off")


def test_infiniband_has_credit_waits_in_place_of_pauses() -> None:
    scenario = spec(fabric="ib")
    ports = {"spine1:leaf1": {"PortXmitWait": 123_456}, "leaf1:h1": {"PortXmitWait": 99}}
    hosts = {"h5": {"PortXmitWait": 200_000}}
    found = figures(scenario, ports=ports, hosts=hosts)
    assert found["credit_wait", "spine1:leaf1"].value == 123_456
    assert found["credit_wait", ""].detail == "h5:leaf2"
    why = reasons(scenario, ports=ports, hosts=hosts)
    assert "InfiniBand has no pause frames" in why["pfc_pause_count", ""]
    assert "InfiniBand has no ECN" in why["ecn_marking_ratio", ""]


def test_queue_depths_are_those_of_the_deepest_port() -> None:
    ports = {"leaf1:h1": {"queue_peak_bytes": 500_000}, "leaf1:h2": {"queue_peak_bytes": 900}}
    found = figures(ports=ports, queues={"leaf1:h1": 400_000})
    assert found["queue_depth_max", ""].value == 500_000
    assert found["queue_depth_max", "leaf1:h2"].value == 900
    hill = 400_000 * (1 - np.abs(np.linspace(-1, 1, 200)))
    assert found["queue_depth_p95", ""].value == pytest.approx(np.quantile(hill, 0.95), rel=0.01)
    assert found["queue_depth_p95", ""].detail == "leaf1:h1"


def test_the_maximum_is_of_all_queues_of_a_port_together() -> None:
    """The counter is of the deepest queue; a port with two of them holds more."""
    ports = {"leaf1:h1": {"queue_peak_bytes": 300_000}}
    found = figures(ports=ports, queues={"leaf1:h1": 400_000})
    assert found["queue_depth_max", ""].value == pytest.approx(400_000, rel=0.01)


def test_rates_of_a_run_without_progress_are_over_its_whole_time() -> None:
    recorded = record(spec(), ends_ns=dict.fromkeys(ENDS, None))
    flows = tuple(
        replace(flow, delivered_bytes=0, observed_until_ns=2 * LAST_NS) for flow in recorded.flows
    )
    totals = {"packets": 100, "retransmitted_packets": 40}
    found = figures(ends_ns=dict.fromkeys(ENDS, None), flows=flows, totals=totals)
    assert found["retransmission_rate", ""].value == pytest.approx(40 / 2e-3)
    assert found["fabric_goodput", ""].value == 0


def test_load_balance_is_of_each_switch_and_of_all_parallel_links() -> None:
    """leaf1 spreads evenly; all of leaf2 goes over one of its two links."""
    ports = {
        "leaf1:spine1": {"tx_prio3_bytes": 3_000, "tx_prio6_bytes": 1_000},
        "leaf1:spine2": {"tx_prio3_bytes": 4_000},
        "leaf2:spine1": {"tx_prio3_bytes": 8_000},
        "leaf2:spine2": {"tx_wire_bytes": 8_000},
    }
    found = figures(ports=ports)
    assert found["jfi_links", "leaf1 to spine1, spine2"].value == pytest.approx(1)
    assert found["mmr", "leaf1 to spine1, spine2"].value == pytest.approx(1)
    assert found["jfi_links", "leaf2 to spine1, spine2"].value == pytest.approx(1 / 2)
    assert found["mmr", "leaf2 to spine1, spine2"].value == pytest.approx(2)
    assert found["jfi_links", ""].value == pytest.approx(16**2 / (4 * (4**2 + 4**2 + 8**2)))
    assert found["mmr", ""].value == pytest.approx(8 / 4)


def test_credit_updates_are_no_load() -> None:
    ports = {"leaf1:spine1": {"PortXmitData": 0, "tx_wire_bytes": 5_000, "PortXmitWait": 0}}
    why = reasons(spec(fabric="ib"), ports=ports, hosts={})
    assert why["jfi_links", ""] == "no packet crossed a parallel link"


def test_fairness_is_of_entries_with_several_flows() -> None:
    """Six flows with a rate of 8 Gbit/s, and one of 16."""
    found = figures(ends_ns={**ENDS, "incast.h2-h1": LAST_NS // 2})
    assert found["jfi_flows", "incast"].value == pytest.approx(8**2 / (7 * (6 + 4)))
    assert reasons()["jfi_flows", "victim"] == "it has one flow"


def test_a_lost_link_counts_once_though_both_ends_count_it() -> None:
    ports = {"leaf1:spine1": {"link_downed": 2}, "spine1:leaf1": {"link_downed": 2}}
    assert figures(ports=ports)["link_flaps", ""].value == 2


def test_damaged_frames_are_a_rate() -> None:
    ports = {"leaf1:spine1": {"rx_crc_errors": 3}}
    assert figures(ports=ports)["crc_error_rate", ""].value == pytest.approx(3_000)


def test_an_incast_has_neither_bus_bandwidth_nor_roofline() -> None:
    found, why = figures(), reasons()
    for kpi in ("jct", "roofline_jct", "jct_ratio", "busbw", "busbw_of_nic_rate"):
        assert (kpi, "incast") not in found
        assert why[kpi, "incast"].startswith("it is no collective")


def test_no_link_fault_means_no_failover_figures() -> None:
    other = FaultRecord("storm", "pause-storm", "h1", 100_000, 150_000, 0, 3, 0)
    why = reasons(faults=(other,))
    assert "no fault that takes a link away" in why["packets_lost", ""]
