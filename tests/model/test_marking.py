"""The WRED curve, and who is marked by it."""

from __future__ import annotations

import pytest

from emu._core import lib
from tests.model.fabrics import INCAST, outcome_of

PMAX = 2**32 // 5


@pytest.mark.parametrize(
    ("depth", "probability"),
    [(0, 0.0), (100_000, 0.0), (100_001, 0.0), (250_000, 0.1), (399_999, 0.2), (400_000, 1.0)],
)
def test_the_curve_is_nothing_then_a_line_then_everything(depth: int, probability: float) -> None:
    """Kmin 100 KB, Kmax 400 KB, Pmax 20 %: checked at evenly spaced random numbers."""
    draws = 10_000
    marked = sum(
        lib.core_wred_marks(100_000, 400_000, PMAX, depth, (i * 2**32) // draws)
        for i in range(draws)
    )
    assert marked / draws == pytest.approx(probability, abs=2 / draws)


def test_a_congested_queue_marks_and_a_marked_packet_makes_its_sender_slow_down() -> None:
    """CE marks lead to CNPs, and CNPs to fewer pauses than without them."""
    without = outcome_of(INCAST, "switches.pfc={}")
    with_ecn = outcome_of(INCAST, "switches.pfc={}", "switches.ecn={}", "hosts.nic.cc=dcqcn")
    assert without.total("ecn_marked") == 0
    assert with_ecn.total("ecn_marked") > 0
    seen = sum(host["np_ecn_marked_roce_packets"] for host in with_ecn.hosts.values())
    assert seen == with_ecn.total("ecn_marked")
    cnps = sum(host["np_cnp_sent"] for host in with_ecn.hosts.values())
    assert 0 < cnps == sum(host["rp_cnp_handled"] for host in with_ecn.hosts.values())
    assert with_ecn.total("tx_pause_frames") < without.total("tx_pause_frames")
