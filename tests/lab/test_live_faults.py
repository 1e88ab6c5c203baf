"""Faults on the real clock: three processes act like one on the virtual
clock, packet for packet."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.measure.recording import Recording
from emu.measure.records import FaultRecord
from emu.report.store import load_recording
from tests.support.lateness import late_packets
from tests.support.needs import need
from tests.support.user import User

pytestmark = pytest.mark.timing

SPEC = """
name: faulty
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches: {pfc: on}
hosts: {nic: {timeout: 8}}  # 1 ms: what the last packet of a message waits for when it is lost
traffic: [{name: pairs, pattern: pair, from: h1-h2, to: h3-h4, op: write, size: 500KB}]
faults:
  - {at: 20us, for: 20us, loss: {cable: leaf1:h1, direction: in, every: 30}}
  - {at: 30us, for: 30us, link-down: {cable: leaf2:h4}}
  - {at: 60us, for: 30us, corruption: {cable: leaf2:h3, direction: out, every: 20}}
  - {at: 80us, for: 30us, slow-receiver: {host: h4, rate: 20Gbit}}
  - {at: 100us, for: 30us, pause-storm: {host: h3, priority: 3}}
"""
NAK_ROUND_NS = 6_000
"""Time that a loss costs a flow: a round trip over 4 links and 3 switches. A loss at the edge of a
fault may occur on one clock only."""


SLOWDOWNS = (8_000, 16_000, 32_000)


def on_both_clocks(myself: User, file: Path, *settings: str) -> tuple[Recording, Recording]:
    """The virtual run, and the real run at the first slowdown that the machine keeps up with."""

    def record(clock: str, slowdown: int) -> Recording:
        out = file.parent / f"{clock}-{slowdown}"
        told = [f"--set={setting}" for setting in (*settings, f"slowdown={slowdown}")]
        ended = myself.run_emu("run", file, *told, "--clock", clock, "--out", out)
        assert ended.code in (0, 5), ended.err
        return load_recording(out)

    for slowdown in SLOWDOWNS:
        real = record("real", slowdown)
        if real.fidelity.verdict == "ok":
            return record("virtual", slowdown), real
    pytest.skip(f"the machine does not keep up at any slowdown of {SLOWDOWNS}")


def test_faults_act_alike_on_both_clocks(myself: User, tmp_path: Path) -> None:
    """As many packets are hit, apart from those at the edges of a fault, and flows end alike."""
    file = tmp_path / "faulty.emu.yml"
    file.write_text(SPEC)

    virtual, real = on_both_clocks(myself, file)
    assert all(flow.completed for flow in real.flows)
    names = [(fault.name, fault.place, fault.end_ns) for fault in virtual.faults]
    assert [(fault.name, fault.place, fault.end_ns) for fault in real.faults] == names
    for expected, got in zip(virtual.faults, real.faults, strict=True):
        edges = 4 + late_packets(real)
        assert counts(got) == pytest.approx(counts(expected), abs=edges, rel=0.05)
    for planned, ran in zip(virtual.flows, real.flows, strict=True):
        edges_ns = 2 * NAK_ROUND_NS + real.fidelity.late_max_ns
        assert ran.end_ns == pytest.approx(planned.end_ns, rel=0.05, abs=edges_ns)


TUNED = """
name: tuned
topology: {kind: dumbbell, hosts_per_side: 1, links: {host: {delay: 1us}, fabric: {rate: 40Gbit}}}
switches: {pfc: {xoff: 96KB, xon: 64KB}, ecn: {kmin: 20KB, kmax: 20KB, marker: ebpf}}
hosts: {nic: {timeout: 8}}  # 1 ms: what the last packet of a message waits for when it is lost
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 500KB}]
faults:
  - {at: 40us, for: 20us, wrong-ecn: {switch: left, kmin: 1MB, kmax: 1500KB}}
  - {at: 70us, wrong-ecn: {port: "left:right", pmax: 0}}
  - {at: 20us, for: 20us, wrong-map: {switch: right, dscp: {26: 0}}}
  - {at: 5us, for: 30us, small-headroom: {port: "left:h1", headroom: 5KB}}
"""


def test_misconfigurations_act_alike_on_both_clocks(myself: User, tmp_path: Path) -> None:
    """The marker marks nothing while kmin is above XOFF, and every queued packet afterwards."""
    need("eBPF marker")
    file = tmp_path / "tuned.emu.yml"
    file.write_text(TUNED)

    virtual, real = on_both_clocks(myself, file)
    assert real.marker == "ebpf"
    late, step = real.faults[:2]
    assert (late.hits, step.hits > 0) == (0, True)
    for expected, got in zip(virtual.faults, real.faults, strict=True):
        edges = 4 + late_packets(real)
        assert counts(got) == pytest.approx(counts(expected), abs=edges, rel=0.05)


def counts(fault: FaultRecord) -> list[int]:
    return [fault.packets_seen, fault.hits, fault.packets_dropped]
