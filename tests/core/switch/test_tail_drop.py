"""What lossy queues hold."""

from __future__ import annotations

import pytest

from tests.support.small_fabrics import outcome_of, star

INCAST = star(3) + "traffic: [{name: hot, pattern: incast, from: h2-h3, to: h1, size: 4MB}]\n"
PACKET = 4_170


@pytest.mark.parametrize("reserved", [0, 20_000, 40_000])
def test_reserved_bytes_are_room_beside_the_pool(reserved: int) -> None:
    """With alpha 1 a single queue fills half of the pool, of which the reserved bytes of 3 ports
    and 8 priorities are no part. Its two senders' packets are first in what is reserved for them,
    and it may be longer by the reserved bytes of one."""
    outcome = outcome_of(
        INCAST, "switches={buffer: 1MB, alpha: 1, latency: 0ns}", f"switches.reserved={reserved}"
    )
    pool = 1_000_000 - 3 * 8 * reserved
    peak = outcome.ports["s1:h1"]["queue_peak_bytes"][0]
    assert peak == pytest.approx((pool + 3 * reserved) / 2, abs=2 * PACKET)


def test_numbers_given_twice_count_once() -> None:
    once = outcome_of(INCAST, "switches={pfc: {priorities: [3]}, scheduling: {strict: [3]}}")
    twice = outcome_of(INCAST, "switches={pfc: {priorities: [3, 3]}, scheduling: {strict: [3, 3]}}")
    assert twice.ports == once.ports
