"""Times on an idle or plainly overloaded fabric, compared with arithmetic done by hand.

Frame sizes follow from the headers alone: a RoCEv2 WRITE packet of P bytes occupies P + 82 byte
times on an Ethernet link, and the first one 16 more for its RETH; on InfiniBand it occupies P + 26,
and again 16 more. A byte at 100 Gb/s lasts 80 ps.
"""

from __future__ import annotations

import pytest

from tests.support.small_fabrics import PAIR, chain, outcome_of, spec_of, star, started

BYTE_PS = 80
LATENCY_PS = 600_000
DELAY_PS = 500_000
OVERHEAD = {"roce": 82, "ib": 26}
HEADER = {"roce": 64, "ib": 20}
"""Bytes after which a cut-through switch starts to forward a packet."""
UPDATE = 6
"""Bytes of InfiniBand's flow-control packet."""


def packets(size: int, mtu: int, overhead: int) -> list[int]:
    """Bytes on the wire of a WRITE's packets, payloads padded to 4 bytes."""
    payloads = [mtu] * (size // mtu) + ([size % mtu] if size % mtu or not size else [])
    wire = [-(-payload // 4) * 4 + overhead for payload in payloads]
    return [wire[0] + 16, *wire[1:]]


def wait_for_credit_ps(fabric: str) -> int:
    """The time until the first credits have crossed the cable on InfiniBand, before which nothing
    leaves."""
    return DELAY_PS + UPDATE * BYTE_PS if fabric == "ib" else 0


@pytest.mark.parametrize("size", [1, 4096, 4097, 65_536, 1_000_000])
@pytest.mark.parametrize("switching", ["store-and-forward", "cut-through"])
@pytest.mark.parametrize("links", [2, 3, 4])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_message_on_an_idle_path_takes_the_sum_of_its_parts(
    fabric: str, links: int, switching: str, size: int
) -> None:
    """h links: h delays, h - 1 switches that each wait for the first packet, all bytes once.

        h·delay + (h-1)·(latency + wait) + sum of all packets,  wait = first packet, or its header

    To the nanosecond on RoCE. On InfiniBand a credit update may be on the line first.
    """
    outcome = outcome_of(
        chain(links),
        f"fabric={fabric}",
        "switches.latency=600ns",
        f"switches.switching={switching}",
        f"traffic.0.size={size}",
        "switches.credits.buffer=128KiB",
    )
    wire = packets(size, 4096, OVERHEAD[fabric])
    wait = min(HEADER[fabric], wire[0]) if switching == "cut-through" else wire[0]
    path = links * DELAY_PS + (links - 1) * (LATENCY_PS + wait * BYTE_PS)
    expected_ns = (path + sum(wire) * BYTE_PS + wait_for_credit_ps(fabric)) // 1000
    ended = outcome.flows["flow"].end_ns
    assert ended is not None
    if fabric == "roce":
        assert ended == expected_ns
    else:
        assert ended == pytest.approx(expected_ns, rel=0.005)


@pytest.mark.parametrize("senders", [2, 3, 8, 32, 64])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_lossless_incast_keeps_the_last_link_busy(fabric: str, senders: int) -> None:
    """n messages leave one link at its rate, from the first packet's arrival on: within 0.5 %.

    2·delay + latency + first packet + n · all packets of a message
    """
    size = 512_000
    outcome = outcome_of(
        star(senders + 1),
        f"fabric={fabric}",
        "switches.latency=600ns",
        "switches.pfc={xoff: 96KB}" if fabric == "roce" else "switches.credits.buffer=64KiB",
        "switches.buffer=32MB",
        "traffic=[{name: incast, pattern: incast, "
        f"from: h2-h{senders + 1}, to: h1, size: {size}}}]",
    )
    wire = packets(size, 4096, OVERHEAD[fabric])
    path = 2 * DELAY_PS + LATENCY_PS + wire[0] * BYTE_PS + wait_for_credit_ps(fabric)
    expected_ns = (path + senders * sum(wire) * BYTE_PS) / 1000
    assert outcome.total("rx_buf_discard") == outcome.total("rx_credit_violations") == 0
    assert outcome.last_end_ns == pytest.approx(expected_ns, rel=0.005)


@pytest.mark.parametrize("buffer_kib", [8, 16, 32, 128])
@pytest.mark.parametrize("delay_us", [1, 4])
@pytest.mark.parametrize("switching", ["store-and-forward", "cut-through"])
def test_credits_bound_the_rate_by_buffer_over_round_trip(
    switching: str, delay_us: int, buffer_kib: int
) -> None:
    """A lane gets as many packets as its buffer holds through per credit loop: within 0.5 %.

    loop = out, the packet's wait, latency, the packet leaves, the update back
    rate = min(packets in buffer · 4096 / loop, line rate · 4096 / 4122)
    """
    spec = spec_of(
        PAIR,
        "fabric=ib",
        "switches.latency=600ns",
        f"switches.credits.buffer={buffer_kib}KiB",
        f"switches.switching={switching}",
        f"topology.links.host.delay={delay_us}us",
        f"topology.links.fabric.delay={delay_us}us",
        "traffic.0.size=100MB",
    )
    packet = 4096 + OVERHEAD["ib"]
    wait = packet if switching == "store-and-forward" else HEADER["ib"]
    loop_ps = 2 * delay_us * 1_000_000 + LATENCY_PS + (wait + packet + UPDATE) * BYTE_PS
    in_buffer = buffer_kib * 1024 // (-(-packet // 64) * 64)
    per_loop = min(in_buffer, loop_ps / (packet * BYTE_PS))
    with started(spec) as run:
        run.run_until(100_000)
        before = run.queue_pair("flow").received
        run.run_until(100_000 + 300 * loop_ps // 1000)
        received = run.queue_pair("flow").received - before
    assert received == pytest.approx(300 * per_loop, rel=0.005)
