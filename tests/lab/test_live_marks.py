"""Markers on a live fabric: the same curve, whoever marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.report.store import load_recording
from tests.lab.needs import need
from tests.lab.user import User

ROOT = Path(__file__).parents[2]
CURVE = ROOT / "topologies" / "results" / "marking-curve.emu.yml"


def _marks(user: User, out: Path, *options: str) -> tuple[str, int, bool]:
    """Who marked, how many packets, and whether the machine kept up."""
    ended = user.run_emu("run", CURVE, "--set", "slowdown=8000", *options, "--out", out)
    assert ended.code in (0, 5), ended.err
    recording = load_recording(out)
    marked = recording.ports["leaf1:h1"]["tx_prio3_ecn_marked"]
    return recording.marker, marked, ended.code == 0


@pytest.mark.parametrize("marker", ["ebpf", "shim"])
def test_a_queue_is_marked_along_the_curve_by_the_kernel_as_by_the_shim(
    myself: User, tmp_path: Path, marker: str
) -> None:
    """Of 800 packets at every depth, as many as on the virtual clock, and as the formula says."""
    if marker == "ebpf":
        need("eBPF marker")
    _, expected, _ = _marks(myself, tmp_path / "virtual", "--clock", "virtual")
    assert expected == pytest.approx((277.3 - 92.4) / 4 + 800 - 277.3, rel=0.01)
    by, marked, in_time = _marks(
        myself, tmp_path / "real", "--set", f"switches.ecn.marker={marker}"
    )
    assert by == marker
    if in_time:
        assert marked == pytest.approx(expected, rel=0.02)
