"""The way of frames from the kernel into the switches: socket messages, or a ring."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from emu.lab.namespace import run_in_lab
from emu.spec.scenario import spec_from_json
from tests.support.switch_job import Forward, Forwarded

MESSAGES, RING = 0, 64
SPEC = json.dumps(
    {
        "name": "switch",
        "plane": "shim",
        "topology": {
            "kind": "graph",
            "hosts": ["h1", "h2"],
            "switches": ["leaf1"],
            "links": [{"between": ["leaf1", host], "rate": "100Gbit"} for host in ("h1", "h2")],
        },
    }
)
TOPOLOGY = spec_from_json(SPEC).topology.build()

pytestmark = [pytest.mark.usefixtures("lab_machine"), pytest.mark.timing]


@pytest.mark.parametrize("ring_frames", [MESSAGES, RING])
def test_frames_arrive_whole_and_in_order(tmp_path: Path, ring_frames: int) -> None:
    """The frames are small and large, with and without a VLAN tag."""
    frames = [_frame(n, size=(64, 4000)[n % 2], tagged=n % 3 == 0) for n in range(50)]
    came = _forward(tmp_path, frames, ring_frames=ring_frames)
    assert list(came.arrived) == [bytes(_forwarded(frame)).hex() for frame in frames]
    assert came.drops == 0


def test_first_frames_without_stamps_keep_their_places(tmp_path: Path) -> None:
    frames = [_frame(n) for n in range(50)]
    came = _forward(tmp_path, frames, ring_frames=MESSAGES, stamps_late=True)
    assert list(came.arrived) == [bytes(_forwarded(frame)).hex() for frame in frames]


def test_frames_lost_at_a_full_ring_are_counted(tmp_path: Path) -> None:
    frames = [_frame(n) for n in range(500)]
    came = _forward(tmp_path, frames, ring_frames=RING, arrivals=RING)
    first = [bytes(_forwarded(frame)).hex() for frame in frames[: len(came.arrived)]]
    assert list(came.arrived) == first
    assert len(first) + came.drops == len(frames)
    assert came.drops > 0
    assert came.drops_over_time == came.drops
    assert all(0 < at_ns <= came.lasted_ns + 1_000_000 for at_ns in came.seen_after_ns)


def test_lossless_drops_are_recorded_over_time(tmp_path: Path) -> None:
    """The headroom holds one packet, and h2 needs 3 ms for each."""
    spec = json.loads(SPEC)
    spec["topology"]["links"][1]["rate"] = "10Mbit"
    pfc = {"headroom": "4200B", "xoff": "4200B", "xon": "0B"}
    spec["switches"] = {"pfc": pfc, "classes": {"dscp": {0: 3}}}
    frames = [_frame(n, size=4000) for n in range(100)]
    came = _forward(tmp_path, frames, ring_frames=MESSAGES, arrivals=2, spec=json.dumps(spec))
    assert came.dropped > 50
    assert came.dropped_over_time == came.dropped


@pytest.mark.parametrize("ring_frames", [MESSAGES, RING])
@pytest.mark.parametrize("tagged", [False, True])
def test_oversized_frames_are_dropped_and_counted(
    tmp_path: Path, ring_frames: int, tagged: bool
) -> None:
    frames = [_frame(0), _frame(1, size=8000, tagged=tagged), _frame(2)]
    came = _forward(tmp_path, frames, ring_frames=ring_frames, arrivals=2)
    assert list(came.arrived) == [bytes(_forwarded(frames[n])).hex() for n in (0, 2)]
    assert came.too_long == 1


def test_without_ring_memory_frames_come_as_messages(tmp_path: Path) -> None:
    """All frames arrive, more than the ring would have held."""
    frames = [_frame(n) for n in range(200)]
    came = _forward(tmp_path, frames, ring_frames=RING, memory=0)
    assert len(came.arrived) == len(frames)
    assert came.drops == 0


def _forward(
    out: Path,
    frames: Sequence[Packet],
    *,
    ring_frames: int,
    arrivals: int | None = None,
    memory: int | None = None,
    stamps_late: bool = False,
    spec: str = SPEC,
) -> Forwarded:
    """The result of a switch whose frames were all waiting. By default, all must arrive."""
    job = Forward(
        spec,
        str(out),
        frames=tuple(bytes(frame).hex() for frame in frames),
        arrivals=len(frames) if arrivals is None else arrivals,
        ring_frames=ring_frames,
        memory=memory,
        stamps_late=stamps_late,
    )
    came, _ = run_in_lab(job, on_progress=lambda _: None, module="tests.support.switch_inside")
    return came


def _frame(number: int, *, size: int = 64, tagged: bool = False) -> Packet:
    """A datagram from h1 to h2 with `size` bytes of payload, which hold its number."""
    port = TOPOLOGY.port_named["h1:leaf1"]
    ether = Ether(src=port.mac, dst=TOPOLOGY.peer[port].mac)
    return (
        (ether / Dot1Q(vlan=7) if tagged else ether)
        / IP(src="10.0.0.1", dst="10.0.0.2")
        / UDP(sport=0xC000, dport=4791)
        / Raw(number.to_bytes(size, "big"))
    )


def _forwarded(frame: Packet) -> Packet:
    """The frame as the switch forwards it."""
    arrived = frame.copy()
    arrived[Ether].src, arrived[Ether].dst = (
        TOPOLOGY.port_named[name].mac for name in ("leaf1:h2", "h2:leaf1")
    )
    arrived[IP].ttl -= 1
    return arrived
