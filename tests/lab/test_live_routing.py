"""Routes of a lab: Open vSwitch follows the shim's choice and avoids links that go down."""

from __future__ import annotations

from pathlib import Path

from emu.measure.recording import Recording
from emu.report.store import load_recording
from tests.support.user import User

SPEC = """
name: ways
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
switches: {pfc: on, routing: {convergence: 5us}}
traffic: [{name: pairs, pattern: pair, from: h1-h2, to: h3-h4, op: write, size: 500KB}]
"""
LOST = "faults=[{at: 20us, for: 1ms, link-down: {cable: 'leaf2:spine1'}}]"


def run(myself: User, folder: Path, *settings: str) -> Recording:
    file = folder / "ways.emu.yml"
    file.write_text(SPEC)
    words = [word for setting in settings for word in ("--set", setting)]
    ended = myself.run_emu("run", file, *words, "--out", folder / "out")
    assert ended.code == 0, ended.err
    return load_recording(folder / "out")


def sent_up(recording: Recording) -> list[int]:
    """The bytes sent on each of leaf1's two uplinks."""
    return [recording.ports[f"leaf1:spine{n}"]["tx_wire_bytes"] for n in (1, 2)]


def test_open_vswitch_sprays_over_all_uplinks(myself: User, tmp_path: Path) -> None:
    """Two flows use two spines packet by packet, with equal bytes on each to within a packet."""
    one, other = sent_up(run(myself, tmp_path, "switches.routing.kind=spray"))
    assert one > 400_000
    assert abs(one - other) < 4300


def test_routes_avoid_a_lost_link_after_convergence(myself: User, tmp_path: Path) -> None:
    """Flows continue over the other spine and lose the packets of 5 us and those in flight."""
    pinned = "kind: pinned, paths: {pairs.h1-h3: spine1, pairs.h2-h4: spine1}"
    ways = f"switches.routing={{{pinned}, convergence: 5us}}"
    recording = run(myself, tmp_path, ways, LOST)
    (fault,) = recording.faults
    assert all(flow.completed for flow in recording.flows)
    assert 0 < fault.packets_dropped < 60
    assert sent_up(recording)[1] > 500_000
