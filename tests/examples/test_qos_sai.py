"""SONiC's QoS tests of a switch, by their names in sonic-mgmt's `tests/qos/test_qos_sai.py`.

A switch team can put its results beside ours. Where a real test stops a port's
transmitter and counts packets into it, here the host behind the port pauses it.
"""

from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.utils import rdpcap

from emu.testing import Fabric, expect, pair

PACKET, GAP = 1082, 24
"""Bytes of a packet with 1024 bytes of payload in a buffer, and its additional bytes on a cable."""
XOFF, XON, QUEUE_LIMIT = 96_000, 64_000, 400_000
CE = 3

pytestmark = pytest.mark.fabric("qos-sai.emu.yml", clock="virtual")


def sent(packets: int, source: str = "h1", **more: Any) -> dict[str, Any]:
    """One message of this many packets to the port that is paused."""
    flow = pair(source, "h4", size=str(1024 * packets), op="send", name=source)
    return {**flow, "start": "2us", **more}


THREE = [sent(1000, f"h{n}") for n in (1, 2, 3)]


class TestQosSai:
    """Priority 3 is lossless and priority 0 lossy."""

    def testQosSaiPfcXoffLimit(self, fabric: Fabric) -> None:
        """The last packet below xoff causes no pause.

        The next one causes a pause and is not lost.
        """
        below, above = (fabric.run(traffic=[sent(XOFF // PACKET + more)]) for more in (0, 1))
        assert below.counter("leaf1:h1", "tx_prio3_pause") == 0
        assert above.counter("leaf1:h1", "tx_prio3_pause") > 0
        expect(above).completed().lossless(priority=3)

    def testQosSaiPfcXonLimit(self, fabric: Fabric) -> None:
        """After its pause ends, the port drains, and its sender stays
        paused until xon is reached."""
        run = fabric.run(traffic=[sent(XOFF // PACKET + 1)])
        held, filled = 100, 2 + (XOFF + PACKET) * 8 / 100e3
        drained = (XOFF - XON) * 8 / 100e3
        paused = run.counter("leaf1:h1", "tx_prio3_pause_duration")
        assert paused == pytest.approx(held - filled + drained, abs=2)

    def testQosSaiHeadroomPoolSize(self, fabric: Fabric) -> None:
        """Three ports pause at the same time, and the headroom holds all packets in flight."""
        run = fabric.run(traffic=THREE)
        assert all(run.counter(f"leaf1:h{n}", "tx_prio3_pause") > 0 for n in (1, 2, 3))
        expect(run).completed().lossless(priority=3)

    def testQosSaiPGDrop(self, fabric: Fabric) -> None:
        """With less headroom than bytes in flight, the ingress ports drop packets."""
        run = fabric.run(traffic=THREE, switches={"pfc": {"headroom": "2KB"}})
        lost = sum(run.counter(f"leaf1:h{n}", "rx_prio3_buf_discard") for n in (1, 2, 3))
        assert lost == run.counter("total", "drops_lossless") > 0

    def testQosSaiLossyQueue(self, fabric: Fabric) -> None:
        """A lossy queue takes packets up to its limit and drops the others without a pause."""
        run = fabric.run(traffic=[{**flow, "priority": 0} for flow in THREE])
        peak = run.counter("leaf1:h4", "queue_peak_bytes")
        assert peak == pytest.approx(QUEUE_LIMIT - PACKET / 2, abs=PACKET / 2)
        assert run.counter("leaf1:h4", "tx_prio0_discards") > 0
        assert run.counter("total", "pause_frames") == run.counter("leaf1:h4", "rx_prio3_pause")

    @pytest.mark.parametrize("packets", [1, 10, 88])
    def testQosSaiQSharedWatermark(self, fabric: Fabric, packets: int) -> None:
        """The watermark of a queue equals the bytes sent to it."""
        run = fabric.run(traffic=[sent(packets)])
        assert run.counter("leaf1:h4", "queue_peak_bytes") == packets * PACKET

    def testQosSaiPgHeadroomWatermark(self, fabric: Fabric) -> None:
        """Headroom is used from the first packet beyond xoff."""
        below, above = (fabric.run(traffic=[sent(88 + more)]) for more in (0, 10))
        assert below.counter("leaf1:h1", "rx_prio3_headroom_peak_bytes") == 0
        assert above.counter("leaf1:h1", "rx_prio3_headroom_peak_bytes") > 0

    @pytest.mark.parametrize("priority", [0, 3])
    def testQosSaiDscpQueueMapping(self, fabric: Fabric, priority: int) -> None:
        """A packet leaves by the queue of its DSCP."""
        run = fabric.run(traffic=[sent(10, priority=priority)])
        assert run.counter("leaf1:h4", f"tx_prio{priority}_packets") == 10

    def testQosSaiDwrr(self, fabric: Fabric) -> None:
        """Queues that are always full share the port by their weights."""
        switches = {"scheduling": {"weights": {0: 5, 3: 15}}, "buffer": "8MB", "queue_limit": "6MB"}
        traffic = [
            {**flow, "name": f"prio{priority}-{flow['name']}", "priority": priority}
            for flow in THREE
            for priority in (0, 3)
        ]
        run = fabric.run(traffic=traffic, switches=switches, faults=[])
        assert all(flow.end_ns for flow in run.recording.flows)
        ends_ns = [
            flow.end_ns or 0 for flow in run.recording.flows if flow.name.startswith("prio3")
        ]
        wire_bits = 3 * 1000 * (PACKET + GAP) * 8
        assert max(ends_ns) == pytest.approx(wire_bits / 75, rel=0.02), "15 of 20 shares"


class TestEcn:
    """Tests of ECN marking, with the names of those that use a traffic generator."""

    def test_red_accuracy(self, fabric: Fabric) -> None:
        """A queue marks nothing up to kmin, on the line up to kmax, and all packets beyond."""
        packets, traffic = 600, [sent(200, f"h{n}") for n in (1, 2, 3)]
        switches = {
            "ecn": {"kmin": "100KB", "kmax": "300KB", "pmax": "50%"},
            "pfc": {"xoff": "400KB"},
            "buffer": "4MB",
        }
        run = fabric.run(traffic=traffic, switches=switches)
        on_the_line, beyond = (300_000 - 100_000) / PACKET, packets - 300_000 / PACKET
        marked = run.counter("leaf1:h4", "tx_prio3_ecn_marked")
        assert marked == pytest.approx(on_the_line * 0.25 + beyond, rel=0.1)

    def test_dequeue_ecn(self, fabric: Fabric) -> None:
        """Marking depends on the bytes behind a packet: the first packet is
        marked and the last is not."""
        ecn = {"kmin": "50KB", "kmax": "50KB", "pmax": "100%", "at": "dequeue"}
        run = fabric.run(traffic=[sent(80)], switches={"ecn": ecn}, capture=["leaf1:h4"])
        (capture,) = run.out.glob("*.pcapng")
        packets = [frame[IP] for frame in rdpcap(str(capture)) if UDP in frame]
        marks = [packet.tos & 3 == CE for packet in packets if packet.dst.endswith(".4")]
        assert marks == sorted(marks, reverse=True)
        assert sum(marks) == pytest.approx(80 - 50_000 / PACKET, abs=1)
