"""The cost of the path between NIC and memory equals the calculated one, on both fabrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.runtime.virtual import VirtualRunner
from tests.support.small_fabrics import PAIR, Outcome, outcome_of, spec_of

NS_PER_S = 10**9
LINE_BPS = 100_000_000_000
PCIE_BPS = 400_000_000_000
COPY_BPS = 160_000_000_000
DOORBELL, READ, WRITE, COMPLETION, COPY = 210, 620, 330, 140, 1100
PIECE = 64_000
GPUDIRECT = (
    f"{{kind: gpudirect, pcie: 400Gbit, doorbell: {DOORBELL}ns, read: {READ}ns, "
    f"write: {WRITE}ns, completion: {COMPLETION}ns}}"
)
STAGED = GPUDIRECT.replace(
    "gpudirect", f"host-staged, copy: 160Gbit, copy_latency: {COPY}ns, copy_piece: {PIECE}B"
)
HEADERS = {
    "roce": {"write": 14 + 20 + 8 + 12 + 16 + 4, "read": 14 + 20 + 8 + 12 + 4 + 4},
    "ib": {"write": 8 + 12 + 16 + 4 + 2, "read": 8 + 12 + 4 + 4 + 2},
}
"""Bytes of a lone packet in addition to its payload, without FCS: of a WRITE, and of a READ's
response."""
READ_REQUEST = {"roce": HEADERS["roce"]["write"], "ib": HEADERS["ib"]["write"]}


def _time_ns(fabric: str, op: str, size: int, *changes: str) -> float:
    """Time from posting one message to the arrival of its last byte in memory."""
    outcome = outcome_of(
        PAIR,
        f"fabric={fabric}",
        f"traffic.0.op={op}",
        f"traffic.0.size={size}B",
        "traffic.0.start=20us",
        *changes,
    )
    flow = outcome.flows["flow"]
    assert flow.completed
    assert flow.end_ns is not None
    return flow.end_ns - flow.start_ns


def _passing(size: int, rate_bps: int) -> float:
    return size * 8 * NS_PER_S / rate_bps


@pytest.mark.parametrize("size", [1, 1000, 4096])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_gpudirect_costs_doorbell_read_and_write(fabric: str, size: int) -> None:
    """Plus the serialisation of the packet on the receiver's PCIe."""
    cost = _time_ns(fabric, "write", size, f"hosts.path={GPUDIRECT}") - _time_ns(
        fabric, "write", size
    )
    packet = -(-size // 4) * 4 + HEADERS[fabric]["write"]
    assert cost == pytest.approx(DOORBELL + READ + _passing(packet, PCIE_BPS) + WRITE, abs=2)


@pytest.mark.parametrize("size", [1000, 4096])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_staging_adds_a_copy_at_both_ends(fabric: str, size: int) -> None:
    """Each copy costs its latency and the serialisation of the piece on the copy engine."""
    cost = _time_ns(fabric, "write", size, f"hosts.path={STAGED}") - _time_ns(fabric, "write", size)
    packet = -(-size // 4) * 4 + HEADERS[fabric]["write"]
    copies = 2 * (COPY + _passing(size, COPY_BPS))
    slowest = min(PCIE_BPS, COPY_BPS)
    direct = DOORBELL + READ + _passing(packet, slowest) + WRITE
    assert cost == pytest.approx(direct + copies, abs=2)


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_read_also_waits_for_remote_memory(fabric: str) -> None:
    """The request is serialised on the remote PCIe, and the response on the local one."""
    size = 1000
    cost = _time_ns(fabric, "read", size, f"hosts.path={GPUDIRECT}") - _time_ns(
        fabric, "read", size
    )
    there = _passing(READ_REQUEST[fabric], PCIE_BPS) + READ
    here = _passing(size + HEADERS[fabric]["read"], PCIE_BPS) + WRITE
    assert cost == pytest.approx(DOORBELL + READ + there + here, abs=2)


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize("slow", ["h1", "h2"])
def test_pcie_slower_than_the_cable_limits_the_rate(fabric: str, slow: str) -> None:
    """At the sender or at the receiver, and without loss: the receiver throttles the fabric."""
    pcie_bps = 40_000_000_000
    outcome = outcome_of(
        PAIR,
        f"fabric={fabric}",
        "traffic.0.size=4MB",
        "switches.pfc={xoff: 96KB}",
        f"hosts.nodes={{{slow}: {{path: {{kind: gpudirect, pcie: 40Gbit, buffer: 100KB}}}}}}",
    )
    flow = outcome.flows["flow"]
    assert flow.completed
    assert flow.retransmitted_packets == 0
    overhead = HEADERS[fabric]["write"] - 16
    expected_bps = pcie_bps * 4096 / (4096 + overhead)
    assert flow.goodput_bps == pytest.approx(expected_bps, rel=0.02)
    if slow == "h2":
        assert _waited(outcome, fabric)


def _waited(outcome: Outcome, fabric: str) -> int:
    """Number of pauses, or credit wait, of the leaf's port to the host."""
    counters = outcome.ports["right:h2"]
    name = "rx_pause_frames" if fabric == "roce" else "xmit_wait"
    return sum(counters[name])


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_messages_in_order_pay_for_completions(fabric: str) -> None:
    """Each of ten writes is posted after the completion of the one before."""

    def took(*changes: str) -> float:
        return _time_ns(fabric, "write", 64, "traffic.0.count=10", *changes)

    cost = took(f"hosts.path={GPUDIRECT}") - took()
    packet, ack = 64 + HEADERS[fabric]["write"], HEADERS[fabric]["write"] - 16 + 4
    each = DOORBELL + READ + _passing(packet, PCIE_BPS) + _passing(ack, PCIE_BPS) + COMPLETION
    last = DOORBELL + READ + _passing(packet, PCIE_BPS) + WRITE
    assert cost == pytest.approx(9 * each + last, abs=12)


def test_report_shows_the_cost_of_the_path(tmp_path: Path) -> None:
    """One sentence for each kind of path, and counters of the NICs."""
    spec = spec_of(
        PAIR,
        "hosts.nodes={h2: {path: {kind: host-staged, copy: 50Gbit, buffer: 50KB}}}",
        "switches.pfc={xoff: 96KB}",
    )
    recording = VirtualRunner().run(spec, out=tmp_path)
    assert recording.notes == (
        "h2: host-staged: a message leaves 1800ns after it was posted, is in memory 1300ns after "
        "it arrived, at 50Gbit at most",
    )
    assert recording.hosts["h2"]["rx_memory_waits"] > 0
    assert recording.hosts["h2"]["rx_memory_discards"] == 0
