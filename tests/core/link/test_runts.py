"""Truncated frames, on every way into a port: rejected, counted once, and never read beyond their
end."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from emu.bindings.fabric import FrameKind
from emu.bindings.port_config import FRAME_BYTES
from emu.measure.counters import ethernet_counters, infiniband_counters
from emu.runtime.virtual import VirtualFabric
from tests.support.random_specs import DROPS
from tests.support.small_fabrics import PAIR, finish, outcome_so_far, spec_of, started

NETWORK = PAIR.partition("traffic:")[0]
CONGESTED = (
    NETWORK.replace("hosts_per_side: 1", "hosts_per_side: 4")
    + "traffic: [{name: flow, pattern: incast, from: h1-h4, to: h5, op: write, size: 100KB}]\n"
    "capture: all\n"
)
DATAGRAMS = NETWORK + (
    "traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: send, transport: ud, size: 1KB}]\n"
    "capture: all\n"
)
SETTINGS = {
    "roce": (
        "fabric=roce",
        "switches.pfc={priorities: [3], xoff: 20KB, xon: 10KB}",
        "switches.ecn={kmin: 4KB, kmax: 8KB, pmax: 100%}",
    ),
    "roce-tagged": ("fabric=roce", "hosts.nic.vlan=7", "switches.pfc={xoff: 96KB}"),
    "roce-cut-through": ("fabric=roce", "switches.switching=cut-through"),
    "ib": ("fabric=ib",),
    "ib-global": ("fabric=ib", "hosts.nic.global_route=true"),
    "ib-cut-through": ("fabric=ib", "switches.switching=cut-through"),
}
RECEIVERS = ("left:h1", "right:left", "h2:right")
"""A switch from a host, a switch from a switch, and a NIC from its switch."""
LONGEST = 140
"""More bytes than the headers and CRCs of any packet have."""
LANES = 16
MAC_CONTROL = b"\x88\x08"
VLAN_TAG = b"\x81\x00"
HOST_DROPS = (
    *("rx_crc_errors", "rx_icrc_encapsulated", "rx_malformed", "rx_other", "rx_unknown_qp"),
    *("rx_pkey_violations", "rx_qkey_violations", "rx_qp_error", "rx_packets"),
)
"""The counters that cover every packet that a NIC's port receives."""


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("receiver", RECEIVERS)
def test_every_length_of_every_frame_is_counted_once(
    settings: tuple[str, ...], receiver: str
) -> None:
    """Each frame is cut at every byte. Bytes of a whole frame before it may remain in memory."""
    frames = _frames_of(settings)
    with started(spec_of(NETWORK, *settings)) as run:
        at = run.topology.port_named[receiver]
        sent = [(kind, frame[:length]) for kind, frame in frames for length in _lengths(frame)]
        before = outcome_so_far(run)
        for kind, runt in sent:
            for frame in (runt, frame_of(frames, kind), runt):
                assert run.fabric.inject(run.topology.peer[at], kind, frame)
            run.run_until(run.now_ns + 2_000)
        run.run_until(run.now_ns + 1_000_000)
        whole = [(kind, frame_of(frames, kind)) for kind, _ in sent]
        _expect_counts(run, receiver, [*sent, *sent, *whole])
        assert before.total("rx_malformed") == 0


def _lengths(frame: bytes) -> Iterable[int]:
    return range(min(len(frame), LONGEST))


def frame_of(frames: list[tuple[FrameKind, bytes]], kind: FrameKind) -> bytes:
    return next(frame for own, frame in frames if own == kind)


def _frames_of(settings: tuple[str, ...]) -> list[tuple[FrameKind, bytes]]:
    """One frame of each kind that hosts and switches send: data, acknowledgements, CNPs, pause
    frames, datagrams, credits."""
    examples: dict[tuple[object, ...], tuple[FrameKind, bytes]] = {}
    for text in (CONGESTED, DATAGRAMS):
        with started(spec_of(text, *settings)) as run:
            finish(run)
            for kind, frame in _captured(run.fabric.captured()):
                examples.setdefault(_sort(kind, frame), (kind, frame))
    return list(examples.values())


def _captured(records: bytes) -> Iterable[tuple[FrameKind, bytes]]:
    """The bytes of each whole frame in the capture (layout: tap.h)."""
    at = 0
    while at < len(records):
        length = int.from_bytes(records[at + 20 : at + 24], "little")
        stored = int.from_bytes(records[at + 24 : at + 28], "little")
        headers = records[at + 32 : at + 32 + stored]
        yield FrameKind(records[at + 28]), headers + bytes(length - stored)
        at += 32 + -(-stored // 8) * 8


def _sort(kind: FrameKind, frame: bytes) -> tuple[object, ...]:
    """The bytes that distinguish kinds of frames, without those that differ in each packet."""
    if kind is FrameKind.IB_LINK:
        return (kind,)
    if kind is FrameKind.IB:
        bth = 48 if frame[1] & 3 == 3 else 8
    elif frame[12:14] == MAC_CONTROL:
        return kind, MAC_CONTROL
    else:
        bth = 46 if frame[12:14] == VLAN_TAG else 42
    return kind, frame[bth], len(frame) > LONGEST


def is_malformed(kind: FrameKind, frame: bytes) -> bool:
    """Whether the frame is too short for its headers and CRCs, or on a lane that does not exist."""
    if kind is FrameKind.ETHERNET:
        return len(frame) < (18 if frame[12:14] == VLAN_TAG else 14)
    if len(frame) < 8 or 0 < frame[0] >> 4 < 15:
        return True
    local, with_grh = frame[1] & 2, frame[1] & 3 == 3
    return len(frame) < (66 if with_grh else 26 if local else 22)


def is_link(kind: FrameKind, frame: bytes) -> bool:
    return kind is FrameKind.IB_LINK or (kind is FrameKind.ETHERNET and frame[12:14] == MAC_CONTROL)


def _expect_counts(run: VirtualFabric, receiver: str, sent: list[tuple[FrameKind, bytes]]) -> None:
    """Conservation: each packet is malformed, dropped for one reason, or received by a host."""
    outcome = outcome_so_far(run)
    own = outcome.ports[receiver]
    malformed = sum(is_malformed(*each) for each in sent if not is_link(*each))
    assert own["rx_malformed"] == [malformed]
    packets = sum(not is_link(*each) for each in sent)
    assert sum(own["rx_packets"]) == packets - malformed
    bad_links = sum(len(frame) != 6 for kind, frame in sent if kind is FrameKind.IB_LINK)
    assert own["rx_flow_control_errors"] == [bad_links]
    pauses = [frame for kind, frame in sent if kind is FrameKind.ETHERNET and is_link(kind, frame)]
    assert own["rx_pause_frames"] == [sum(len(frame) >= 34 for frame in pauses)]
    assert own["rx_mac_control_unknown"] == [sum(len(frame) < 34 for frame in pauses)]
    reasons = (*DROPS, "no_lane", "vl15_dropped", "hoq_discard", "rx_credit_violations")
    dropped = sum(outcome.total(reason) for reason in reasons)
    arrived = sum(host[name] for host in outcome.hosts.values() for name in HOST_DROPS)
    assert dropped + arrived == packets


@pytest.mark.parametrize("lane", range(1, LANES - 1))
def test_packet_on_a_missing_lane_is_dropped(lane: int) -> None:
    """As a stale or hostile sender could send it: without credit."""
    with started(spec_of(NETWORK, "fabric=ib")) as run:
        at = run.topology.port_named["left:h1"]
        packet = bytes([lane << 4, 2, 0, 2]) + bytes(26)
        assert run.fabric.inject(run.topology.peer[at], FrameKind.IB, packet)
        run.run_until(10_000)
        counters = outcome_so_far(run).ports["left:h1"]
        assert counters["rx_malformed"] == [1]
        assert sum(counters["rx_packets"]) == 0


def test_runt_shows_in_standard_counters() -> None:
    """Under the names of perfquery and ethtool."""
    for fabric, kind, name in (
        ("ib", FrameKind.IB, "PortMalformedPacketErrors"),
        ("roce", FrameKind.ETHERNET, "rx_undersize_pkts"),
    ):
        with started(spec_of(NETWORK, f"fabric={fabric}")) as run:
            at = run.topology.port_named["left:h1"]
            assert run.fabric.inject(run.topology.peer[at], kind, b"\x10")
            run.run_until(10_000)
            ports = outcome_so_far(run).ports
        named = infiniband_counters(ports) if fabric == "ib" else ethernet_counters(ports)
        assert named["left:h1"][name] == 1


@pytest.mark.parametrize("kind", [FrameKind.ETHERNET, FrameKind.IB, FrameKind.IB_LINK])
def test_frame_of_the_other_fabric_is_dropped(kind: FrameKind) -> None:
    """At a switch and at a NIC, whatever its bytes are."""
    other = "ib" if kind is FrameKind.ETHERNET else "roce"
    lost = [] if kind is FrameKind.IB_LINK else ["dropped"]
    frame = bytes([0, 2, 0, 2, 0, 7, 0, 1]).ljust(64, b"\0")
    for receiver in ("left:h1", "h2:right"):
        with started(spec_of(NETWORK, f"fabric={other}")) as run:
            at = run.topology.port_named[receiver]
            before = outcome_so_far(run).ports[receiver]
            assert run.fabric.inject(run.topology.peer[at], kind, frame)
            run.run_until(1_000)
            after = outcome_so_far(run).ports[receiver]
        changed = {name for name, cells in after.items() if cells != before[name]}
        assert changed - LINK_UPKEEP == {"rx_malformed", *lost}


LINK_UPKEEP = {"rx_flow_control", "tx_flow_control", "tx_wire_bytes"}
"""The counters of an idle InfiniBand port that change."""


@pytest.mark.parametrize(
    ("fabric", "name"), [("roce", "rx_oversize_pkts"), ("ib", "PortMalformedPacketErrors")]
)
def test_oversized_frame_is_counted_at_the_receiver(fabric: str, name: str) -> None:
    """The frame takes no buffer space, so none is missing afterwards."""
    kind = FrameKind.IB if fabric == "ib" else FrameKind.ETHERNET
    with started(spec_of(NETWORK, f"fabric={fabric}")) as run:
        at = run.topology.port_named["left:h1"]
        assert not run.fabric.inject(run.topology.peer[at], kind, bytes(FRAME_BYTES + 1))
        ports = outcome_so_far(run).ports
    named = infiniband_counters(ports) if fabric == "ib" else ethernet_counters(ports)
    raw = ports["left:h1"]
    assert named["left:h1"][name] == 1
    assert (raw["rx_oversize"], sum(raw["dropped"])) == ([1], 1)
