"""Automatic headroom: what a paused port must still take in, by arithmetic."""

from __future__ import annotations

import pytest

from emu.spec.headroom import headroom_bytes, headroom_of, response_quanta
from emu.spec.model import Spec, spec_from_text

TWO_SPEEDS = """
topology:
  kind: dumbbell
  hosts_per_side: 1
  links: {host: {rate: 100Gbit, delay: 500ns}, fabric: {rate: 400Gbit, length: 10m}}
switches: {pfc: on, nodes: {right: {pfc: off}}}
"""


def spec(more: str = "") -> Spec:
    return spec_from_text((TWO_SPEEDS + more).encode(), source="two.emu.yml")


def test_headroom_is_the_sum_of_its_parts() -> None:
    """100 Gbit/s, 500 ns: three frames, a pause frame, the cable twice, 394 quanta of 64 bytes."""
    frame = 4096 + 74 + 24
    expected = 3 * frame + 84 + 12_500 + 394 * 64
    assert headroom_bytes(rate_bps=100_000_000_000, delay_ps=500_000, mtu=4096) == expected


@pytest.mark.parametrize(
    ("rate_bps", "quanta"),
    [(1, 2), (10**9, 2), (10**9 + 1, 67), (40 * 10**9, 118), (8 * 10**11, 905)],
)
def test_a_rate_between_two_listed_ones_takes_the_faster_one_s_response(
    rate_bps: int, quanta: int
) -> None:
    """802.3's table has steps; beyond its end the last one holds."""
    assert response_quanta(rate_bps) == quanta


def test_a_switch_has_the_headroom_of_its_hungriest_port() -> None:
    """Of two speeds the faster one, and of all hosts the largest packet; none without PFC."""
    fast = headroom_bytes(rate_bps=400_000_000_000, delay_ps=50_000, mtu=4096)
    slow = headroom_bytes(rate_bps=100_000_000_000, delay_ps=500_000, mtu=4096)
    assert headroom_of(spec(), "left") == max(fast, slow)
    assert headroom_of(spec(), "right") == 0
    small = "hosts: {nic: {mtu: 1024}}\n"
    mixed = "hosts: {nic: {mtu: 1024}, nodes: {h2: {nic: {mtu: 4096}}}}\n"
    assert headroom_of(spec(small), "left") == max(fast, slow) - 3 * (4096 - 1024)
    assert headroom_of(spec(mixed), "left") == max(fast, slow)


def test_headroom_that_is_told_is_taken() -> None:
    """Even one that is too small: losing packets may be what is to be shown."""
    told = TWO_SPEEDS.replace("pfc: on", "pfc: {headroom: 1KB}")
    assert headroom_of(spec_from_text(told.encode(), source="a.emu.yml"), "left") == 1_000
