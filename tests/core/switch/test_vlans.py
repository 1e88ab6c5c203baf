"""VLANs part hosts: who reaches whom, and which counter says why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.measure.recording import Recording
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import spec_from_text

SPEC = """
name: vlans
topology: {{kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 4}}
vlans: {{10: [h1, h2, h5], 20: [h2, h3, h6]}}
hosts: {{nodes: {{h2: {{nic: {{vlan: {tag_of_h2}}}}}, h3: {{nic: {{vlan: {tag_of_h3}}}}}}}}}
time_limit: 1ms
traffic:
  - {{name: f, pattern: pair, from: {source}, to: {target}, op: write, size: 4KB}}
"""
"""h4, h7 and h8 are in no VLAN."""


def run(
    folder: Path, source: str, target: str, *, tag_of_h2: int = 10, tag_of_h3: int = 20
) -> Recording:
    text = SPEC.format(source=source, target=target, tag_of_h2=tag_of_h2, tag_of_h3=tag_of_h3)
    return VirtualRunner().run(spec_from_text(text.encode(), source="spec"), out=folder)


def dropped(recording: Recording) -> dict[str, list[str]]:
    """The counters of VLANs that are not 0, with their ports."""
    return {
        name: ports
        for name in ("vlan_discard", "vlan_no_route")
        if (ports := [port for port, own in recording.ports.items() if own[name]])
    }


@pytest.mark.parametrize(
    ("source", "target"),
    [("h1", "h5"), ("h1", "h2"), ("h3", "h6"), ("h4", "h8"), ("h2", "h5")],
    ids="-".join,
)
def test_hosts_of_a_vlan_reach_each_other(tmp_path: Path, source: str, target: str) -> None:
    """Near and far; with a tag, without one, and without a VLAN."""
    recording = run(tmp_path, source, target)
    assert all(flow.completed for flow in recording.flows)
    assert dropped(recording) == {}


@pytest.mark.parametrize(
    ("source", "target"),
    [("h1", "h6"), ("h1", "h3"), ("h1", "h8"), ("h4", "h5"), ("h2", "h6")],
    ids="-".join,
)
def test_others_do_not(tmp_path: Path, source: str, target: str) -> None:
    """h2 is in both VLANs, and sends in the first."""
    recording = run(tmp_path, source, target)
    assert not any(flow.completed for flow in recording.flows)
    assert dropped(recording) == {"vlan_no_route": [f"leaf1:{source}"]}


def test_a_host_of_two_vlans_sends_in_the_one_of_its_tag(tmp_path: Path) -> None:
    """Its answers, too: h5 is in the other VLAN and gets none."""
    assert all(flow.completed for flow in run(tmp_path, "h2", "h6", tag_of_h2=20).flows)
    lost = run(tmp_path, "h5", "h2", tag_of_h2=20)
    assert dropped(lost) == {"vlan_no_route": ["leaf1:h2"]}


def test_a_tag_of_another_vlan_reaches_nobody(tmp_path: Path) -> None:
    for target in ("h6", "h1"):
        recording = run(tmp_path, "h3", target, tag_of_h3=10)
        assert not any(flow.completed for flow in recording.flows)
        assert dropped(recording) == {"vlan_discard": ["leaf1:h3"]}
