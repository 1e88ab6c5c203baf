"""Fixes for victims of congestion spreading: each is applied as printed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from emu.report.diagnosis import diagnoses
from emu.report.run_view import RunFacts
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import spec_from_text
from emu.subnet.sm_sweeps import manage

NAME = "victims of congestion spreading"

VICTIM = """
fabric: ib
payload: elided
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 4}
traffic:
  - {name: incast, pattern: incast, from: [h3, h4, h6, h7, h8], to: h1, op: write, size: 200MB}
  - {name: victim, pattern: pair, from: h5, to: h2, op: write, size: 200MB}
time_limit: 4ms
"""
THIRD = "  - {name: third, pattern: pair, from: h2, to: h4, op: write, size: 1MB, priority: 1}"
MOVED = ["switches.credits.vls=2", "hosts.nodes.h5.nic.sl=1"]
BY_TABLE = ["hosts.nic.cc=cct", "switches.fecn=on", "hosts.nic.cct.ccti_timer=37"]

LANES = {
    "as it is by default": (VICTIM, MOVED),
    "where an entry has a level of its own": (
        VICTIM.replace("name: victim,", "name: victim, priority: 0,"),
        ["switches.credits.vls=2", "traffic.victim.priority=1"],
    ),
    "where a level is in use by an entry": (
        VICTIM.replace("time_limit", f"{THIRD}\ntime_limit"),
        ["switches.credits.vls=4", "hosts.nodes.h5.nic.sl=2"],
    ),
    "where the incast has a level of its own, and no lane": (
        VICTIM.replace("name: incast,", "name: incast, priority: 1,"),
        ["switches.credits.vls=2"],
    ),
    "where the next level rides on the same lane": (
        VICTIM + "subnet: {sl2vl: [0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]}",
        ["switches.credits.vls=2", "hosts.nodes.h5.nic.sl=6"],
    ),
    "where the next lane is not served": (
        VICTIM + "subnet: {vl_arbitration: {high: {0: 4}, low: {0: 4, 2: 4}}}",
        ["switches.credits.vls=4", "hosts.nodes.h5.nic.sl=2"],
    ),
}

TABLES = {
    "where the victim's host sends into the congestion": VICTIM.replace("from: h5,", "from: h6,"),
    "where all levels ride on one lane": VICTIM
    + "subnet: {sl2vl: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}",
    "where path records have the levels": VICTIM + "subnet: {engine: dfsssp}",
}

NONE = {
    "too short for the index": TABLES["where the victim's host sends into the congestion"].replace(
        "time_limit: 4ms", "time_limit: 1ms"
    ),
    "a table that ends before": VICTIM.replace("from: h5,", "from: h6,")
    + "hosts: {nic: {cct: {cct: [0, 1, 2, 3]}}}",
}


def facts_of(text: str, folder: Path, settings: tuple[str, ...] = ()) -> RunFacts:
    spec = spec_from_text(text.encode(), source="sick.emu.yml", settings=settings)
    topology = spec.topology.build()
    recording = VirtualRunner(manage(spec, topology, folder)).run(spec, out=folder)
    return RunFacts(spec.name, recording, spec, topology)


def cure_of(run: RunFacts) -> list[str] | None:
    """The settings of the fix as printed, or None if the run has no victims."""
    told = [own.in_short() for own in diagnoses(run) if own.pathology.name == NAME]
    words = shlex.split(told[0].partition("Cure: ")[2]) if told else None
    return None if words is None else [word for word in words if word != "--set"]


def victim_bps(run: RunFacts) -> float:
    """The victim's rate in the second half of the run, in bit/s."""
    series = run.recording.series
    (name,) = (flow.name for flow in run.flows if flow.traffic == "victim")
    delivered, half = series.flow_bytes[:, series.flows.index(name)], len(series.time_ns) // 2
    took_ns = series.time_ns[-1] - series.time_ns[half]
    return float(delivered[-1] - delivered[half]) * 8e9 / float(took_ns)


@pytest.mark.parametrize("case", LANES)
def test_a_separate_lane_frees_a_victim(case: str, tmp_path: Path) -> None:
    text, cure = LANES[case]
    sick = facts_of(text, tmp_path)
    assert cure_of(sick) == cure
    cured = facts_of(text, tmp_path, tuple(cure))
    assert cure_of(cured) is None
    assert victim_bps(cured) > 4 * victim_bps(sick)


@pytest.mark.parametrize("case", TABLES)
def test_a_congestion_control_table_frees_victims(case: str, tmp_path: Path) -> None:
    sick = facts_of(TABLES[case], tmp_path)
    assert cure_of(sick) == BY_TABLE
    cured = facts_of(TABLES[case], tmp_path, tuple(BY_TABLE))
    assert cure_of(cured) is None
    assert victim_bps(cured) > 3 * victim_bps(sick)


@pytest.mark.parametrize("case", NONE)
def test_a_table_that_would_not_help_is_not_printed(case: str, tmp_path: Path) -> None:
    run = facts_of(NONE[case], tmp_path)
    assert cure_of(run) == []


def test_a_table_with_its_default_timer_does_not_help(tmp_path: Path) -> None:
    """Marks are rarer than the default timer, so the printed fix has another timer."""
    text = TABLES["where the victim's host sends into the congestion"]
    by_default = facts_of(text, tmp_path, ("hosts.nic.cc=cct", "switches.fecn=on"))
    assert victim_bps(by_default) < 1.01 * victim_bps(facts_of(text, tmp_path))
