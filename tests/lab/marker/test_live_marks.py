"""Markers on a live fabric: eBPF and shim mark along the same curve."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.report.store import load_recording
from emu.wire.inspect import inspect
from tests.support.needs import need
from tests.support.user import User

ROOT = Path(__file__).parents[3]
CURVE = ROOT / "topologies" / "results" / "marking-curve.emu.yml"


@pytest.mark.parametrize("marker", ["ebpf", "shim"])
def test_ebpf_and_shim_mark_along_the_curve(myself: User, tmp_path: Path, marker: str) -> None:
    """The spec's checks compare the marks in the capture with the curve at every depth."""
    if marker == "ebpf":
        need("eBPF marker")
    settings = ("--set", f"switches.ecn.marker={marker}")
    ended = myself.run_emu("run", CURVE, *settings, "--out", tmp_path / "out")
    assert ended.code == 0, ended.out
    assert load_recording(tmp_path / "out").marker == marker
    assert ended.out.count("passed  ") == 10, ended.out


TAGGED = """
name: tagged
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches:
  pfc: {}
  classes: {trust: pcp}
  ecn: {kmin: 20KB, kmax: 80KB, marker: ebpf}
hosts: {nic: {vlan: 100}}
traffic: [{name: in, pattern: incast, from: h2-h4, to: h1, op: write, size: 200KB}]
capture: ["leaf1:h1"]
"""


def test_tagged_frames_cross_open_vswitch_and_are_marked(myself: User, tmp_path: Path) -> None:
    """All frames use the priority of their PCP, nothing is lost, and
    marked packets arrive with CE."""
    need("eBPF marker")
    spec = tmp_path / "tagged.emu.yml"
    spec.write_text(TAGGED)
    ended = myself.run_emu("run", spec, "--out", tmp_path / "out")
    assert ended.code == 0, ended.out
    recording = load_recording(tmp_path / "out")
    assert all(flow.completed for flow in recording.flows)
    assert recording.totals["drops_lossless"] == recording.totals["drops_lossy"] == 0
    found = inspect(tmp_path / "out" / recording.captures["leaf1:h1"])
    packets = found.icrc.ok
    assert found.vlan_tagged == packets == found.carriers["RoCEv2 over IPv4"]
    assert recording.ports["leaf1:h1"]["tx_prio3_packets"] >= 3 * -(-200_000 // 4096)
    assert found.ecn["ce"] == recording.totals["ce_marked"] > 0
