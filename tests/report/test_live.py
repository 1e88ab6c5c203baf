"""What a lab that is up says in sentences, of fabrics on the virtual clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import pytest

from emu.lab.nic_process import FLOW_COLUMNS
from emu.measure.look import FlowLook, LinkChange, Look, SeenFault, TrafficState
from emu.report.live import sentences
from emu.shim.virtual import VirtualFabric
from emu.spec.fault import fault_names
from tests.model.fabrics import spec_of, started
from tests.report.test_diagnosis import SICK
from traffic.rnic.endpoints import FAILURES

WINDOW_NS = 100_000
RUNNING = TrafficState(1, "running", None, ())
CALM = """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches: {pfc: on, ecn: {kmin: 20KB, kmax: 80KB, pmax: 20%}}
hosts: {nic: {cc: dcqcn}}
traffic: [{name: pairs, pattern: pair, from: h1-h2, to: h3-h4, op: write, size: 4MB}]
"""
DEAF = CALM + "faults: [{name: cut, at: 100us, link-down: {cable: 'leaf2:h3'}}]\n"


def look(run: VirtualFabric) -> Look:
    """As a lab has it."""
    seen = run.observe()
    hosts = {run.topology.port_name[run.topology.ports[h][0]]: h for h in run.topology.host}
    cells = np.zeros((len(run.endpoints.flows), len(FLOW_COLUMNS)), np.int64)
    run.endpoints.post_flows(cells)
    flows = zip(run.endpoints.flows, cells.tolist(), strict=True)
    return Look(
        time_ns=run.now_ns,
        ports={name: own for name, own in seen.ports.items() if name not in hosts},
        host_ports={name: own for name, own in seen.ports.items() if name in hosts},
        hosts=seen.nics or {},
        traffic=RUNNING,
        faults=tuple(_faults(run)),
        flows={flow.name: FlowLook(a, b, FAILURES.get(c), d) for flow, (a, b, c, d) in flows},
        deadlocks=seen.deadlocks,
    )


def _faults(run: VirtualFabric) -> Iterator[SeenFault]:
    specs = dict(zip(fault_names(run.spec.faults), run.spec.faults, strict=True))
    for added in run.fabric.faults:
        yield SeenFault(**asdict(added.record()), spec=specs[added.name])


def told(text: str, *settings: str, until_ns: int = 1_500_000) -> list[list[str]]:
    """The sentences of one window after another."""
    spec = spec_of(text, *settings)
    found = []
    with started(spec) as run:
        before = look(run)
        while run.now_ns < until_ns:
            run.run_until(run.now_ns + WINDOW_NS)
            after = look(run)
            found.append(sentences(spec, before, after))
            before = after
    return found


@pytest.mark.parametrize("name", [*SICK])
def test_a_lab_says_what_its_report_would(name: str) -> None:
    """The same detectors, on the latest moments: the pathology is named in some of them."""
    spec = spec_of(SICK[name].replace("CC", "none"))
    until_ns = min(spec.time_limit_ps // 1000, 4_000_000)
    all_told = told(SICK[name].replace("CC", "none"), until_ns=until_ns)
    assert any(
        sentence.lower().startswith(name.lower()) for window in all_told for sentence in window
    ), all_told[-1]


def test_a_credit_deadlock_is_said_on_infiniband() -> None:
    """Shortest paths around a ring, and no lanes that break the loop."""
    last = told(SICK["deadlock"].replace("switches: {pfc: on}\n", ""), "fabric=ib")[-1]
    assert last[0].startswith("Credit deadlock: since "), last


def test_a_healthy_lab_says_nothing() -> None:
    assert not any(told(CALM, until_ns=600_000))


def test_a_storm_that_is_over_is_said_no_more() -> None:
    """A sentence is about this moment."""
    storm = "faults=[{at: 300us, for: 300us, pause-storm: {host: h3, priority: 3}}]"
    windows = told(CALM, storm, "traffic.pairs.size=40MB", until_ns=1_000_000)
    assert not any(windows[:3])
    assert any("h3 paused its leaf" in sentence for sentence in windows[4])
    assert not any("storm" in sentence for window in windows[7:] for sentence in window)


def test_a_watchdog_at_work_is_said() -> None:
    """Which port, who pauses it, and what it cost so far."""
    dog = "switches.watchdog={detection: 100us, restoration: 100us, poll: 50us}"
    storm = "faults=[{at: 100us, pause-storm: {host: h3, priority: 3}}]"
    windows = told(CALM, dog, storm, "traffic.pairs.size=40MB", until_ns=700_000)
    said = [one for window in windows for one in window if "watchdog" in one]
    assert said, windows
    assert all(one.startswith("PFC watchdog: leaf2:h3 is paused by h3") for one in said)


def test_queue_pairs_that_gave_up_are_said() -> None:
    """Which, and with what status."""
    settings = ("hosts.nic.timeout=4", "hosts.nic.retry_count=1")
    last = told(DEAF, *settings)[-1]
    assert last[0].startswith("Gave up: the queue pairs of 1 of 2 flows failed (pairs.h1-h3)"), last
    assert "IBV_WC_RETRY_EXC_ERR" in last[0]


def test_a_lost_link_is_said_with_its_cause() -> None:
    """And whether routes avoid it yet; without traffic, too."""
    spec = spec_of(CALM)
    cut = SeenFault("cut", "link-down", "leaf1:spine1", 10, None, cables=("leaf1:spine1",))
    with started(spec) as run:
        ports = {name: own for name, own in run.observe().ports.items() if not name.startswith("h")}
    no_traffic = TrafficState(0, "none", None, ())

    def at(time_ns: int) -> Look:
        changes = (LinkChange(1_000, ("leaf1:spine1",), 101_000),)
        return Look(time_ns, ports, {}, no_traffic, (cut,), links=changes)

    (early,) = sentences(spec, at(1_000), at(50_000))
    (late,) = sentences(spec, at(1_000), at(200_000))
    assert early.startswith("Link down: leaf1:spine1, by the fault cut; packets")
    assert late == "Link down: leaf1:spine1, by the fault cut; routes have avoided it since 101 us"
