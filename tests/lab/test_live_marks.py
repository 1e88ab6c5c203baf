"""Markers on a live fabric: the same curve, whoever marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.report.store import load_recording
from tests.lab.needs import need
from tests.lab.user import User

ROOT = Path(__file__).parents[2]
CURVE = ROOT / "topologies" / "results" / "marking-curve.emu.yml"


@pytest.mark.parametrize("marker", ["ebpf", "shim"])
def test_a_queue_is_marked_along_the_curve_by_the_kernel_as_by_the_shim(
    myself: User, tmp_path: Path, marker: str
) -> None:
    """At every depth as often as the formula says: the spec's own checks read the capture."""
    if marker == "ebpf":
        need("eBPF marker")
    settings = ("--set", "slowdown=8000", "--set", f"switches.ecn.marker={marker}")
    ended = myself.run_emu("run", CURVE, *settings, "--out", tmp_path / "out")
    assert ended.code in (0, 5), ended.out
    assert load_recording(tmp_path / "out").marker == marker
    assert (ended.out.count("passed  ") == 10) == (ended.code == 0), ended.out
