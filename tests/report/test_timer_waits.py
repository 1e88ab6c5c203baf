"""Retransmission timers in a report: flows that waited for one, and timers that fired too early."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emu.measure.records import FailedQueuePair
from emu.report.diagnosis import diagnoses
from emu.report.early_timers import resent_without_loss
from emu.report.run_view import RunFacts
from emu.report.timer_waits import timer_waits
from emu.spec.model import spec_from_text
from tests.support.sick_fabrics import facts_of
from tests.support.synthetic import record, run

LEAF = """
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 4}
"""
END_NS = 20_000_000
GAP = slice(20, 180)
"""Samples, of 200, during which no byte of a flow arrives: 16 of 20 ms."""


def with_a_gap(entry: str, *, hosts: str = "nic: {timeout: 10}", **fields: Any) -> RunFacts:
    """A lossy run of one entry.

    Nothing arrives for most of the time, and packets are retransmitted after the timeout of 4.2 ms.
    """
    text = f"{LEAF}hosts: {{{hosts}}}\ntraffic: [{{name: load, {entry}}}]\n"
    spec = spec_from_text(text.encode(), source="gap.emu.yml")
    names = [flow.name for flow in spec.workload().flows]
    made = record(
        spec,
        ends_ns=dict.fromkeys(names, END_NS),
        resent=dict.fromkeys(names, 3),
        ports={"leaf1:h1": {"tx_prio3_discards": 3}},
        hosts={host: {"local_ack_timeout_err": 1} for host in ("h1", "h2")},
        totals={"packets": 2_000, "retransmitted_packets": 3, "drops_lossy": 3},
    )
    delivered = made.series.flow_bytes.copy()
    delivered[GAP] = delivered[GAP.start]
    series = replace(made.series, flow_bytes=delivered)
    return run(replace(made, series=series, **fields), spec)


def test_a_busy_flow_with_a_gap_waited_for_the_timer() -> None:
    told = timer_waits(with_a_gap("pattern: pair, from: h2, to: h1, size: 4MB"))
    assert told.startswith("; load stood still until the retransmission timer")
    assert "(hosts.nic.timeout: 10); a shorter timer would reduce the wait" in told


@pytest.mark.parametrize(
    "entry",
    [
        "pattern: pair, from: h2, to: h1, size: 4KB, count: 4, every: 5ms",
        "pattern: ping-pong, from: h2, to: h1, size: 4KB, count: 4",
        "pattern: storage, from: h2, to: h1, block: 4KB, count: 4, depth: 1",
        "pattern: all-reduce, among: [h1, h2], size: 1MB",
        "pattern: background, among: [h1, h2], sizes: hadoop, rate: 1Gbit, count: 4",
        "pattern: hot-spot, among: [h1, h2, h3], hot: h1, size: 4KB, count: 4",
        "pattern: pair, from: h2, to: h1, op: send, size: 1KB, count: 9, transport: ud",
    ],
)
def test_gaps_of_the_traffic_are_no_timer_waits(entry: str) -> None:
    """The traffic is paced, waits for answers, belongs to a job, or is never retransmitted."""
    assert timer_waits(with_a_gap(entry)) == ""


def test_flows_without_loss_or_failed_did_not_wait() -> None:
    entry = "pattern: pair, from: h2, to: h1, size: 4MB"
    assert timer_waits(with_a_gap(entry, ports={"leaf1:h1": {"tx_prio1_discards": 3}})) == ""
    gave_up = (FailedQueuePair("load", "h2", "h1", END_NS, "IBV_WC_RETRY_EXC_ERR"),)
    assert timer_waits(with_a_gap(entry, failed_queue_pairs=gave_up)) == ""


def test_a_hosts_own_timer_is_named_by_its_key() -> None:
    """The sender has its own timeout."""
    own = "nodes: {h2: {nic: {timeout: 10}}}"
    told = timer_waits(with_a_gap("pattern: pair, from: h2, to: h1, size: 4MB", hosts=own))
    assert "(hosts.nodes.h2.nic.timeout: 10)" in told


LATE_ANSWERS = """
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 5}
hosts: {nic: {mtu: 1024, timeout: 1}}
switches: {pfc: {priorities: [PRIORITIES]}}
traffic:
  - {name: incast, pattern: incast, from: "all[1:]", to: h1, size: 2MB}
  - {name: lossy, pattern: incast, from: "all[1:]", to: h1, size: 500KB, priority: 1}
time_limit: 20ms
"""


def test_early_timers_suppress_the_advice_to_lower_them(tmp_path: Path) -> None:
    """One priority loses packets and another only waits.

    The early timers are a diagnosis of their own, which names the worst flow. The advice for
    loss does not contradict it.
    """
    late = facts_of(LATE_ANSWERS.replace("PRIORITIES", "3"), tmp_path)
    in_vain = {flow.name: flow.resent for flow in resent_without_loss(late)}
    assert in_vain
    assert all(name.startswith("incast.") for name in in_vain)
    told = {one.pathology.name: one.found for one in diagnoses(late)}
    early = told["premature retransmission timeout"]
    assert f"sent {sum(in_vain.values()):,} packets again" in early.evidence
    assert f"{max(in_vain, key=lambda name: in_vain[name])}" in early.evidence
    assert early.settings == ("hosts.nic.timeout=14",)
    assert "shorter timer" not in told["loss"].evidence


def test_lost_packets_are_not_retransmitted_in_vain() -> None:
    """Packets that a fault may have dropped count as lost."""
    lossy = with_a_gap("pattern: pair, from: h2, to: h1, size: 4MB")
    assert resent_without_loss(lossy) == []
    clean = {"packets": 2_000, "retransmitted_packets": 3}
    recording = replace(lossy.recording, ports={}, totals=clean)
    assert [flow.name for flow in resent_without_loss(run(recording, lossy.spec))] == ["load"]
    faulty = replace(recording, totals=clean | {"drops_fault": 1})
    assert resent_without_loss(run(faulty, lossy.spec)) == []


def test_samples_grow_evenly_outside_the_gap() -> None:
    """The cases above rely on this."""
    series = with_a_gap("pattern: pair, from: h2, to: h1, size: 4MB").recording.series
    grew = np.diff(series.flow_bytes[:, 0]) > 0
    assert np.count_nonzero(~grew) == pytest.approx(160, abs=1)
