"""Sentences about a running lab, from fabrics on the virtual clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace

import numpy as np
import pytest

from emu.bindings.host_nics import FAILURES
from emu.lab.nic_process import FLOW_COLUMNS
from emu.measure.lab_snapshot import FlowSnapshot, LabSnapshot, LinkChange, SeenFault, TrafficState
from emu.report.lab_diagnosis import needs_second_snapshot, problems_now
from emu.runtime.virtual import VirtualFabric
from emu.spec.fault import fault_names
from tests.support.sick_fabrics import SICK
from tests.support.small_fabrics import spec_of, started

WINDOW_NS = 100_000
RUNNING = TrafficState(1, "running", None, ())
CALM = """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches: {pfc: on, ecn: {kmin: 20KB, kmax: 80KB, pmax: 20%}}
hosts: {nic: {cc: dcqcn}}
traffic: [{name: pairs, pattern: pair, from: h1-h2, to: h3-h4, op: write, size: 4MB}]
"""
AROUND = SICK["deadlock"].replace("switches: {pfc: {xoff: 96KB}}\n", "")
DEAF = CALM + "faults: [{name: cut, at: 100us, link-down: {cable: 'leaf2:h3'}}]\n"


def snapshot_of(run: VirtualFabric) -> LabSnapshot:
    """A snapshot as taken from a lab."""
    seen = run.observe()
    hosts = {run.topology.port_name[run.topology.ports[h][0]]: h for h in run.topology.host}
    cells = np.zeros((len(run.endpoints.flows), len(FLOW_COLUMNS)), np.int64)
    run.endpoints.post_flows(cells)
    flows = zip(run.endpoints.flows, cells.tolist(), strict=True)
    return LabSnapshot(
        time_ns=run.now_ns,
        ports={name: own for name, own in seen.ports.items() if name not in hosts},
        host_ports={name: own for name, own in seen.ports.items() if name in hosts},
        hosts=seen.nics or {},
        traffic=RUNNING,
        faults=tuple(_faults(run)),
        flows={flow.name: FlowSnapshot(a, b, FAILURES.get(c), d) for flow, (a, b, c, d) in flows},
        deadlocks=seen.deadlocks,
    )


def _faults(run: VirtualFabric) -> Iterator[SeenFault]:
    specs = dict(zip(fault_names(run.spec.faults), run.spec.faults, strict=True))
    for added in run.fabric.faults:
        yield SeenFault(**asdict(added.record()), spec=specs[added.name])


def told(text: str, *settings: str, until_ns: int = 1_500_000) -> list[list[str]]:
    """The sentences of each window."""
    spec = spec_of(text, *settings)
    found = []
    with started(spec) as run:
        before = snapshot_of(run)
        while run.now_ns < until_ns:
            run.run_until(run.now_ns + WINDOW_NS)
            after = snapshot_of(run)
            found.append(problems_now(spec, before, after))
            before = after
    return found


OF_WHOLE_RUNS = {"slow rate recovery", "premature retransmission timeout"}
"""Pathologies whose detectors need the samples of a whole run, or the retransmissions of flows."""


@pytest.mark.parametrize("name", sorted(SICK.keys() - OF_WHOLE_RUNS))
def test_a_lab_reports_the_pathology_of_its_report(name: str) -> None:
    """The same detectors look at the latest window, and some window names the pathology."""
    spec = spec_of(SICK[name].replace("CC", "none"))
    until_ns = min(spec.time_limit_ps // 1000, 4_000_000)
    all_told = told(SICK[name].replace("CC", "none"), until_ns=until_ns)
    assert any(
        sentence.lower().startswith(name.lower()) for window in all_told for sentence in window
    ), all_told[-1]


TORUS = """
fabric: ib
topology: {kind: torus, dimensions: [5, 3], hosts_per_switch: 1}
hosts: {nic: {timeout: 8}}
traffic:
  - name: round
    pattern: pair
    from: [h1, h4, h7, h10, h13]
    to: [h7, h10, h13, h1, h4]
    size: 2MB
"""


@pytest.mark.parametrize("text", [AROUND, TORUS], ids=["ring", "torus"])
def test_a_credit_deadlock_is_reported(text: str) -> None:
    """The shortest paths form a credit loop, and no lanes break it. The report says the same."""
    last = told(text, "fabric=ib", "subnet.engine=minhop")[-1]
    assert last[0].startswith("Deadlock (since traffic began): at "), last
    assert "waiting for each other's credit: " in last[0]


def test_a_deadlock_outlives_failed_queue_pairs() -> None:
    """Their packets still hold the credit and would block later senders."""
    impatient = ("fabric=ib", "hosts.nic.timeout=4", "hosts.nic.retry_count=0")
    with started(spec_of(AROUND, *impatient)) as run:
        run.run_until(1_400_000)
        before = stopped(snapshot_of(run))
        assert needs_second_snapshot(before)
        run.run_until(1_500_000)
        found = problems_now(run.spec, before, stopped(snapshot_of(run)))
    names = [one.partition(" (since")[0] for one in found]
    assert names == ["Failed queue pairs", "Deadlock"]


def stopped(own: LabSnapshot) -> LabSnapshot:
    """The same snapshot after the end of the traffic."""
    return replace(own, traffic=TrafficState(1, "over", None, ()))


def test_a_healthy_lab_reports_nothing() -> None:
    assert not any(told(CALM, until_ns=600_000))


def test_a_storm_that_is_over_is_no_longer_reported() -> None:
    """Sentences are about the present."""
    storm = "faults=[{at: 300us, for: 300us, pause-storm: {host: h3, priority: 3}}]"
    windows = told(CALM, storm, "traffic.pairs.size=40MB", until_ns=1_000_000)
    assert not any(windows[:3])
    assert any("h3 paused its leaf" in sentence for sentence in windows[4])
    assert not any("storm" in sentence for window in windows[7:] for sentence in window)


DOG = "switches.watchdog={detection: 100us, restoration: 100us, poll: 50us}"
STORM = "faults=[{at: 100us, pause-storm: {host: h3, priority: 3}}]"


def test_an_active_watchdog_is_reported_as_in_the_report() -> None:
    """One sentence names the port, the pausing host and the cost."""
    windows = told(CALM, DOG, STORM, "traffic.pairs.size=40MB", until_ns=700_000)
    found = [[one for one in window if "watchdog" in one] for window in windows[4:]]
    assert all(len(window) == 1 for window in found), windows
    for (one,) in found:
        assert one.startswith("Pause storm stopped by the watchdog (the last 100 us): h3 paused")
        assert "took leaf2:h3 out of PFC" in one


def test_a_watchdog_is_reported_without_traffic() -> None:
    """The report's detectors need traffic."""
    with started(spec_of(CALM, DOG, STORM, "traffic.pairs.size=40MB")) as run:
        run.run_until(550_000)
        seen = stopped(snapshot_of(run))
    (found,) = problems_now(run.spec, seen, seen)
    assert found.startswith("PFC watchdog: h3 pauses leaf2:h3 without a break in priority 3; ")
    assert "the watchdog has taken it out of PFC and has dropped" in found


def test_a_watchdog_with_action_alert_changes_nothing() -> None:
    alert = DOG.replace("poll", "action: alert, poll")
    last = told(CALM, alert, STORM, "traffic.pairs.size=40MB", until_ns=700_000)[-1]
    assert not any("out of PFC" in one for one in last), last
    assert any("only reports it (action: alert)" in one for one in last), last


def test_every_port_that_a_watchdog_disabled_is_named() -> None:
    storms = STORM.replace("}}]", "}}, {at: 100us, pause-storm: {host: h4, priority: 3}}]")
    last = told(CALM, DOG, storms, "traffic.pairs.size=40MB", until_ns=700_000)[-1]
    (found,) = [one for one in last if "watchdog" in one]
    assert "leaf2:h3, leaf2:h4 out of PFC" in found


def test_failed_queue_pairs_are_reported_as_in_the_report() -> None:
    """The sentence gives flow, time and status. The other flows are not called unfair."""
    settings = ("hosts.nic.timeout=4", "hosts.nic.retry_count=1")
    last = told(DEAF, *settings)[-1]
    assert last[0].startswith(
        "Failed queue pairs (since traffic began): 1 queue pair went to the error state: "
        "pairs.h1-h3 (h1 to h3). The first did at "
    ), last
    assert "transport retry counter exceeded after 1 retries without progress" in last[0]


def test_a_lost_link_is_reported_with_its_cause() -> None:
    """The sentence says whether routes avoid the link yet, also without traffic."""
    spec = spec_of(CALM)
    cut = SeenFault("cut", "link-down", "leaf1:spine1", 10, None, cables=("leaf1:spine1",))
    with started(spec) as run:
        ports = {name: own for name, own in run.observe().ports.items() if not name.startswith("h")}
    no_traffic = TrafficState(0, "none", None, ())

    def at(time_ns: int) -> LabSnapshot:
        changes = (LinkChange(1_000, ("leaf1:spine1",), 101_000),)
        return LabSnapshot(time_ns, ports, {}, no_traffic, (cut,), links=changes)

    (early,) = problems_now(spec, at(1_000), at(50_000))
    (late,) = problems_now(spec, at(1_000), at(200_000))
    assert early.startswith("Link down: leaf1:spine1, by the fault cut; packets")
    assert late == "Link down: leaf1:spine1, by the fault cut; routes have avoided it since 101 us"
