"""The lower bound of completion times, compared with formulas written out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from emu.measure.bound import (
    INFINIBAND,
    ROCE_V2,
    ROCE_V2_TAGGED,
    Batch,
    Fabric,
    PacketOverhead,
    fabric_of,
    last_finish_bound,
    packets_of,
)
from tests.support.synthetic import spec
from topologies.graph import Builder, Topology, Wire
from topologies.leaf_spine import leaf_spine
from traffic.verb import Verb

MTU = 4096
DELAY_NS, LATENCY_NS = 500, 600
BYTE_NS = 0.08  # at 100 Gb/s


def clos(fabric_rate_bps: int = 100_000_000_000) -> Topology:
    return leaf_spine(
        2,
        2,
        4,
        host_wire=Wire(100_000_000_000, DELAY_NS * 1000),
        fabric_wire=Wire(fabric_rate_bps, DELAY_NS * 1000),
    )


def fabric(
    topology: Topology, overhead: PacketOverhead = ROCE_V2, *, cut_through: bool = False
) -> Fabric:
    return Fabric(
        overhead=overhead,
        mtu_bytes=dict.fromkeys(topology.host, MTU),
        latency_ps=dict.fromkeys(topology.switch, LATENCY_NS * 1000),
        cut_through=frozenset(topology.switch if cut_through else ()),
    )


def write(src: str, dst: str, size_bytes: int, not_before_ns: int = 0) -> Batch:
    return Batch(src, dst, Verb.WRITE, size_bytes, not_before_ns)


def bound_ns(topology: Topology, operations: list[Batch], **options: Any) -> int:
    bound = last_finish_bound(topology, operations, fabric(topology, **options))
    assert bound is not None
    return bound.last_finish_ns


@pytest.mark.parametrize(
    ("overhead", "verb", "sizes"),
    [
        (ROCE_V2, Verb.WRITE, [4096 + 98, 4096 + 82, 1808 + 82]),
        (ROCE_V2, Verb.SEND, [4096 + 82, 4096 + 82, 1808 + 82]),
        (ROCE_V2_TAGGED, Verb.WRITE, [4096 + 102, 4096 + 86, 1808 + 86]),
        (INFINIBAND, Verb.WRITE, [4096 + 42, 4096 + 26, 1808 + 26]),
        (INFINIBAND, Verb.SEND, [4096 + 26, 4096 + 26, 1808 + 26]),
    ],
)
def test_packets_occupy_the_bytes_of_the_wire_format(
    overhead: PacketOverhead, verb: Verb, sizes: list[int]
) -> None:
    """The first packet of a WRITE carries the RETH, and every packet the other headers."""
    packets = packets_of(10_000, MTU, verb, overhead)
    assert (packets.first, packets.last, packets.total) == (sizes[0], sizes[-1], sum(sizes))


def test_payload_is_padded_to_words() -> None:
    """Five bytes of payload occupy eight."""
    assert packets_of(5, MTU, Verb.SEND, ROCE_V2).total == 8 + 82


def test_one_message_on_an_idle_path_is_exact() -> None:
    """Store-and-forward: every hop serialises the first packet; the others follow it once."""
    first, rest = 4096 + 98, 9 * (4096 + 82)
    expected = (4 * first + rest) * BYTE_NS + 4 * DELAY_NS + 3 * LATENCY_NS
    assert bound_ns(clos(), [write("h1", "h5", 10 * MTU)]) == int(expected)


def test_cut_through_waits_for_headers_only() -> None:
    """The extra serialisations shrink to header times."""
    whole, header = 10 * (4096 + 82) + 16, 64
    expected = (whole + 3 * header) * BYTE_NS + 4 * DELAY_NS + 3 * LATENCY_NS
    assert bound_ns(clos(), [write("h1", "h5", 10 * MTU)], cut_through=True) == pytest.approx(
        expected, abs=1
    )


def test_cut_through_to_a_faster_link_avoids_underrun() -> None:
    """A packet that leaves four times as fast as it arrives starts when three quarters of it have
    arrived."""
    packet, header, fast_ns = 4096 + 98, 64, BYTE_NS / 4
    expected = packet * (BYTE_NS - fast_ns) + 2 * header * fast_ns + packet * BYTE_NS
    topology = clos(fabric_rate_bps=400_000_000_000)
    assert bound_ns(topology, [write("h1", "h5", MTU)], cut_through=True) == pytest.approx(
        expected + 4 * DELAY_NS + 3 * LATENCY_NS, abs=1
    )


def test_incast_is_bound_by_the_receivers_link() -> None:
    """Seven senders: all their bytes cross one link, after the nearest sender's first packet."""
    topology = clos()
    operations = [write(f"h{n}", "h1", 1_000_000) for n in range(2, 9)]
    bound = last_finish_bound(topology, operations, fabric(topology))
    message = 245 * 82 + 16 + 1_000_000
    nearest = (4096 + 98) * BYTE_NS + DELAY_NS + LATENCY_NS
    assert bound is not None
    assert bound.link == "leaf1:h1"
    assert bound.last_finish_ns == int(nearest + 7 * message * BYTE_NS + DELAY_NS)


def test_parallel_links_share_the_load() -> None:
    """Two slow spines carry half each at best, which is slower than any host's link."""
    topology = clos(fabric_rate_bps=10_000_000_000)
    operations = [write(f"h{n}", f"h{n + 4}", 1_000_000) for n in range(1, 5)]
    bound = last_finish_bound(topology, operations, fabric(topology))
    assert bound is not None
    assert bound.link == "spine1:leaf2 + spine2:leaf2"
    assert bound.last_finish_ns > 4 * 1_000_000 * 8 // 20


def test_late_start_moves_the_bound() -> None:
    """A link cannot use the time before a message is posted."""
    early, late = write("h2", "h1", MTU), write("h3", "h1", MTU, not_before_ns=1_000_000)
    alone = bound_ns(clos(), [write("h3", "h1", MTU)])
    assert bound_ns(clos(), [early, late]) == 1_000_000 + alone


def test_no_traffic_or_no_path_has_no_bound() -> None:
    """Without messages, or without a path for them."""
    builder = Builder()
    for switch in ("left", "right"):
        builder.add_switch(switch, "side")
        builder.add_cable(switch, builder.add_host(), Wire(10**9, 0))
    apart = builder.topology()
    assert last_finish_bound(apart, [], fabric(apart)) is None
    assert last_finish_bound(apart, [write("h1", "h2", MTU)], fabric(apart)) is None


def test_spec_gives_framing_latency_and_mtu() -> None:
    """The bound uses the final settings of switches and hosts."""
    changed = spec(
        fabric="ib",
        switches={"latency": "100ns"},
        hosts={"nic": {"mtu": 1024}},
    )
    fabric = fabric_of(changed, changed.topology.build())
    assert fabric.overhead is INFINIBAND
    assert fabric.latency_ps["leaf1"] == 100_000
    assert fabric.mtu_bytes["h8"] == 1024
    assert fabric.cut_through == {"leaf1", "leaf2", "spine1", "spine2"}


@pytest.mark.parametrize(("tagged", "overhead"), [(8, ROCE_V2_TAGGED), (7, ROCE_V2)])
def test_tags_count_only_if_every_host_has_one(tagged: int, overhead: PacketOverhead) -> None:
    """A lower bound must hold for the fastest host."""
    nodes = {f"h{n}": {"nic": {"vlan": 0}} for n in range(1, tagged + 1)}
    changed = spec(hosts={"nodes": nodes})
    assert fabric_of(changed, changed.topology.build()).overhead is overhead


def test_infiniband_switches_cut_through_by_default() -> None:
    """Ethernet switches store and forward, and a role's own setting takes precedence."""
    for name, expected in (("ib", {"spine1", "spine2"}), ("roce", {"leaf1", "leaf2"})):
        own = {"leaf": {"switching": "store-and-forward" if name == "ib" else "cut-through"}}
        changed = spec(fabric=name, switches={"roles": own})
        assert fabric_of(changed, changed.topology.build()).cut_through == expected


def test_equal_consecutive_messages_count_together() -> None:
    """A batch of three has the same bound as three batches of one."""
    topology = clos()
    together = [Batch("h1", "h5", Verb.WRITE, 1_000_000, count=3)]
    apart = [write("h1", "h5", 1_000_000)] * 3
    assert bound_ns(topology, together) == bound_ns(topology, apart)
