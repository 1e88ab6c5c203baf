"""Times on an idle or plainly overloaded fabric, against arithmetic done by hand.

Frame sizes follow from the headers alone: a RoCEv2 WRITE packet of P bytes
occupies P + 82 byte times on an Ethernet link, the first one 16 more for its
RETH; on InfiniBand P + 26, likewise. A byte at 100 Gb/s lasts 80 ps.
"""

from __future__ import annotations

import pytest

from tests.model.fabrics import ONE_SWITCH, PAIR, outcome_of

BYTE_PS = 80
LATENCY_PS = 600_000
DELAY_PS = 500_000


def packets(size: int, mtu: int, overhead: int) -> list[int]:
    """Wire bytes of a WRITE's packets, payloads padded to 4 bytes."""
    payloads = [mtu] * (size // mtu) + ([size % mtu] if size % mtu or not size else [])
    wire = [-(-payload // 4) * 4 + overhead for payload in payloads]
    return [wire[0] + 16, *wire[1:]]


def single_message_ps(size: int, overhead: int, *, links: int, header: int | None) -> int:
    """`header`: bytes a cut-through switch waits for; None for store-and-forward."""
    wire = packets(size, 4096, overhead)
    per_hop = wire[0] if header is None else min(header, wire[0])
    path = links * DELAY_PS + (links - 1) * (LATENCY_PS + per_hop * BYTE_PS)
    return path + sum(wire) * BYTE_PS


@pytest.mark.parametrize("size", [1, 4096, 4097, 65_536, 1_000_000])
@pytest.mark.parametrize("switching", ["store-and-forward", "cut-through"])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_a_message_on_an_idle_path_takes_exactly_the_sum_of_its_parts(
    fabric: str, switching: str, size: int
) -> None:
    """First packet hop by hop, the rest once: to the nanosecond."""
    outcome = outcome_of(
        PAIR,
        f"fabric={fabric}",
        f"switches.switching={switching}",
        f"traffic.0.size={size}",
        "switches.credits.buffer=128KiB",
    )
    overhead, header = (82, 64) if fabric == "roce" else (26, 20)
    cut = header if switching == "cut-through" else None
    expected_ps = single_message_ps(size, overhead, links=3, header=cut)
    if fabric == "ib":
        # The first credits have to cross the cable: a flow-control packet, 6 bytes.
        expected_ps += DELAY_PS + 6 * BYTE_PS
        assert abs(outcome.flows["flow"].end_ns * 1000 - expected_ps) < 50_000
    else:
        assert outcome.flows["flow"].end_ns == expected_ps // 1000


@pytest.mark.parametrize("senders", [2, 3, 4])
def test_a_lossless_incast_keeps_the_last_link_busy_to_the_end(senders: int) -> None:
    """n messages leave one link at its rate: within half a per cent of the bound."""
    traffic = f"""
traffic: [{{name: incast, pattern: incast, from: h2-h{senders + 1}, to: h1, op: write, size: 1MB}}]
"""
    outcome = outcome_of(ONE_SWITCH + traffic, "switches.pfc={}")
    bound_ns = senders * sum(packets(1_000_000, 4096, 82)) * BYTE_PS // 1000
    assert outcome.total("rx_buf_discard") == 0
    assert bound_ns < outcome.last_end_ns < bound_ns * 1.005 + 3_000


@pytest.mark.parametrize("buffer_kib", [8, 16, 32])
def test_credits_bound_the_rate_by_buffer_over_round_trip(buffer_kib: int) -> None:
    """A lane with b bytes of buffer gets b bytes through per credit loop, never more."""
    long_cables = [
        "topology.links.host.delay=2us",
        "topology.links.fabric.delay=2us",
        "switches.switching=cut-through",
    ]
    outcome = outcome_of(
        PAIR,
        "fabric=ib",
        f"switches.credits.buffer={buffer_kib}KiB",
        "traffic.0.size=10MB",  # long enough that the time along the path does not count
        *long_cables,
    )
    flow = outcome.flows["flow"]
    packets_in_buffer = buffer_kib * 1024 // 64 // 65
    # Out to the far buffer, through the switch, and the credit back.
    loop_ps = 2 * 2_000_000 + LATENCY_PS + (20 + 4122 + 6) * BYTE_PS
    expected_bps = packets_in_buffer * 4096 * 8 * 10**12 / loop_ps
    assert flow.goodput_bps == pytest.approx(min(expected_bps, 99.3e9), rel=0.02)
    assert outcome.total("rx_credit_violations") == 0
