"""Collectives on a live fabric: the duration is that of the closed form,
and the sums are numpy's."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.measure.records import JobRecord
from emu.report.store import load_recording
from tests.support.idle_star import message_ns
from tests.support.small_fabrics import star
from tests.support.user import User

RANKS, PIECE = 8, 16_384


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_a_ring_takes_the_time_of_its_steps(myself: User, tmp_path: Path, fabric: str) -> None:
    """The time is 2(n - 1)·(t(S/n) + a) within 3 %, on InfiniBand that of the virtual clock."""
    size = RANKS * PIECE
    spec = tmp_path / "ring.emu.yml"
    spec.write_text(
        f"{star(RANKS)}name: ring\nfabric: {fabric}\n"
        f"traffic: [{{name: sum, pattern: all-reduce, among: h1-h{RANKS}, size: {size}B}}]\n"
    )
    exact, virtual = (_job(myself, tmp_path, spec, clock) for clock in ("exact", "virtual"))
    if fabric == "roce":
        expected = 2 * (RANKS - 1) * message_ns(PIECE)
        assert virtual.took_ns == pytest.approx(expected, rel=0.03)
    assert exact.wrong == virtual.wrong == 0
    assert exact.took_ns == virtual.took_ns


def _job(user: User, folder: Path, spec: Path, clock: str) -> JobRecord:
    """The collective of a run."""
    ended = user.run_emu("run", spec, "--clock", clock, "--out", folder / clock)
    assert ended.code == 0, ended.err
    (job,) = load_recording(folder / clock).jobs
    return job
