"""Storage on the virtual clock: calculated latencies, IOPS limits, and the arrival of every byte.

Two hosts and a switch, cables of 100 Gb/s and 500 ns, 600 ns in the switch.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from emu.measure.ios import IoFigures, io_figures
from emu.report.progress import share_done
from emu.runtime.virtual import VirtualRunner
from tests.support.small_fabrics import finish, spec_of, star, started

MEDIA_NS = 10_000
BLOCK = 4096
STORAGE = star(2) + (
    "traffic:\n"
    "  - {name: disk, pattern: storage, from: h1, to: h2, media: 10us, block: 4KiB, start: 5us}\n"
)
"""The start time is after the first credit updates of InfiniBand ports."""
FABRICS = ("roce", "ib")
READS, WRITES = "traffic.0.reads=100%", "traffic.0.reads=0%"
FETCHED = "traffic.0.in_capsule=0"

ACK = {"roce": 86, "ib": 30}
"""Bytes on the cable, framing included."""
SMALLEST = {"roce": 82, "ib": 26}
"""Bytes on the cable of a SEND, without its payload."""
RETH, AETH = 16, 4
FLOW_CONTROL_NS = 7
"""InfiniBand's flow-control packets on two cables, and the rounding of two times."""


def packet(fabric: str, payload: int, *more: int) -> int:
    """Bytes on the cable of a packet with these headers in addition to a SEND's."""
    return SMALLEST[fabric] + payload + sum(more)


def way_ns(fabric: str, *packets: int) -> float:
    """Time from the first bit of the first packet to the last bit of the last, over both cables.

    Ethernet switches store and forward, and the first packet is not shorter than the others; on
    InfiniBand the switch waits for 20 bytes of header.
    """
    waited = packets[0] if fabric == "roce" else 20
    return (waited + sum(packets)) * 0.08 + 2 * 500 + 600


def took_ns(fabric: str, *settings: str) -> tuple[list[int], tuple[IoFigures, ...]]:
    """The duration of each I/O and the figures of all, after a check that every byte has
    arrived."""
    given = (f"fabric={fabric}", "switches.latency=600ns", *settings)
    with started(spec_of(STORAGE, *given)) as run:
        assert all(flow.completed for flow in finish(run).flows.values())
        requests = run.observe().requests
    return (requests.end_ns - requests.start_ns).tolist(), io_figures(requests)


@pytest.mark.parametrize("fabric", FABRICS)
def test_read_takes_the_sum_of_its_parts(fabric: str) -> None:
    """The command, the drive, and the data with the response right behind them."""
    command, response = packet(fabric, 64), packet(fabric, 16)
    data = packet(fabric, BLOCK, RETH)
    (took,), _ = took_ns(fabric, READS)
    expected = way_ns(fabric, command) + MEDIA_NS + way_ns(fabric, data, response)
    assert took == pytest.approx(expected, abs=FLOW_CONTROL_NS)


@pytest.mark.parametrize("fabric", FABRICS)
def test_write_in_capsule_takes_the_sum_of_its_parts(fabric: str) -> None:
    """Command and data in two packets, the drive, and the response."""
    data, rest = packet(fabric, BLOCK), packet(fabric, 64)
    (took,), _ = took_ns(fabric, WRITES)
    expected = way_ns(fabric, data, rest) + MEDIA_NS + way_ns(fabric, packet(fabric, 16))
    assert took == pytest.approx(expected, abs=FLOW_CONTROL_NS)


@pytest.mark.parametrize("fabric", FABRICS)
def test_fetched_write_costs_one_more_round_trip(fabric: str) -> None:
    """The command, whose ACK precedes the READ; the READ and its response; the drive; the
    response."""
    command, response = packet(fabric, 64), packet(fabric, 16)
    request, data = packet(fabric, 0, RETH), packet(fabric, BLOCK, AETH)
    (took,), _ = took_ns(fabric, WRITES, FETCHED)
    round_trip = ACK[fabric] * 0.08 + way_ns(fabric, request) + way_ns(fabric, data)
    expected = way_ns(fabric, command) + round_trip + MEDIA_NS + way_ns(fabric, response)
    assert took == pytest.approx(expected, abs=FLOW_CONTROL_NS)


@pytest.mark.parametrize("fabric", FABRICS)
def test_deep_queues_fill_the_line_with_blocks(fabric: str) -> None:
    """Per I/O the line to the initiator carries the data, the response and the command's ACK; as
    many I/Os are in flight as the queue is deep (Little's law)."""
    io = packet(fabric, BLOCK, RETH) + packet(fabric, 16) + ACK[fabric]
    _, (reads,) = took_ns(fabric, READS, "traffic.0.depth=64", "traffic.0.count=3000")
    assert reads.iops is not None
    assert reads.latency.mean_ns is not None
    assert reads.iops == pytest.approx(100e9 / 8 / io, rel=0.015)
    assert reads.bandwidth_bps == pytest.approx(reads.iops * BLOCK * 8, rel=1e-6)
    assert reads.iops * reads.latency.mean_ns * 1e-9 == pytest.approx(64, rel=0.02)


LINE, DRIVE, DEPTH = "line", "drive", "depth"


@pytest.mark.parametrize(
    ("rate_gbit", "depth", "tightest"), [(200, 64, LINE), (40, 64, DRIVE), (40, 4, DEPTH)]
)
@pytest.mark.parametrize("way", [READS, WRITES], ids=["read", "write"])
@pytest.mark.parametrize("fabric", FABRICS)
def test_iops_are_limited_by_line_drive_or_depth(
    fabric: str, way: str, rate_gbit: int, depth: int, tightest: str
) -> None:
    """IOPS = min(line / I/O on the line, drive / block, depth / latency of a lone I/O)."""
    drive = f"traffic.0.media_rate={rate_gbit}Gbit"
    (alone_ns,), _ = took_ns(fabric, way, drive)
    _, (ios,) = took_ns(fabric, way, drive, f"traffic.0.depth={depth}", "traffic.0.count=4000")
    data = (BLOCK, RETH) if way == READS else (BLOCK,)
    other = packet(fabric, 16) if way == READS else packet(fabric, 64)
    line = 100e9 / 8 / (packet(fabric, *data) + other + ACK[fabric])
    allowed = {LINE: line, DRIVE: rate_gbit * 1e9 / 8 / BLOCK, DEPTH: depth / alone_ns * 1e9}
    assert min(allowed, key=lambda limit: allowed[limit]) == tightest
    assert ios.iops == pytest.approx(allowed[tightest], rel=0.02)


@pytest.mark.parametrize("fabric", FABRICS)
def test_drive_limits_reads_and_writes_separately(fabric: str) -> None:
    """Two initiators with two queues each for reads and for writes: a drive of 30 and 10 Gb/s gives
    30 and 10, and two drives twice that."""
    for targets, times in (("h3", 1), ("h3-h4", 2)):
        spec = spec_of(
            star(4) + "traffic:\n"
            f"  - {{name: r, pattern: storage, from: h1-h2, to: {targets}, queues: 2, depth: 16,\n"
            "     count: 300, media: 5us, media_rate: 30Gbit, start: 5us}\n"
            f"  - {{name: w, pattern: storage, from: h1-h2, to: {targets}, queues: 2, depth: 16,\n"
            "     count: 100, media: 5us, media_rate: 30Gbit, media_write_rate: 10Gbit,\n"
            "     reads: 0%, start: 5us}\n",
            f"fabric={fabric}",
        )
        with started(spec) as run:
            finish(run)
            reads, writes = io_figures(run.observe().requests)
        assert reads.bandwidth_bps == pytest.approx(30e9 * times, rel=0.02)
        assert writes.bandwidth_bps == pytest.approx(10e9 * times, rel=0.02)


def test_blocks_of_one_drive_wait_for_each_other() -> None:
    """Three simultaneous reads of 4096 bytes at 32.768 Gb/s take a microsecond each: the drive
    sends them a microsecond apart, more than the line needs."""
    took, _ = took_ns(
        "roce", READS, "traffic.0.media_rate=32.768Gbit", "traffic.0.depth=3", "traffic.0.count=3"
    )
    assert np.diff(took).tolist() == pytest.approx([1000, 1000], abs=packet("roce", 64) * 0.08)


def test_queue_of_depth_one_serialises_ios() -> None:
    """Its IOPS are one over the latency."""
    took, (reads,) = took_ns("roce", READS, "traffic.0.count=50")
    assert len(set(took)) <= 3, "more than rounding, and a first I/O without an ACK before it"
    assert reads.iops == pytest.approx(1e9 / np.mean(took), rel=1e-4)


@pytest.mark.parametrize("fabric", FABRICS)
def test_no_io_starts_after_the_duration(fabric: str) -> None:
    """Started I/Os finish; the run does not wait for others and reports nothing about them."""
    settings = ("traffic.0.count=500", "traffic.0.depth=4", "traffic.0.reads=50%", FETCHED)
    with started(spec_of(STORAGE, f"fabric={fabric}", *settings)) as run:
        finish(run)
        whole = run.observe().requests
    with started(
        spec_of(STORAGE, f"fabric={fabric}", "traffic.0.duration=200us", *settings)
    ) as run:
        flows = finish(run).flows
        assert run.finished
        requests = run.observe().requests.asked_for()
    in_time = (whole.start_ns - whole.start_ns.min()) <= 200_000
    assert 4 < in_time.sum() < len(whole.of)
    assert requests.start_ns.tolist() == whole.start_ns[in_time].tolist()
    assert requests.end_ns.tolist() == whole.end_ns[in_time].tolist()
    assert all(flow.completed for flow in flows.values())
    data = flows["disk.reads"].bytes + flows["disk.writes"].bytes
    assert data == len(requests.of) * BLOCK


def test_progress_of_a_duration_follows_time() -> None:
    """A queue with a hundred times more I/Os than fit, beside a flow of known bytes; at the end all
    progress is complete."""
    spec = spec_of(
        STORAGE + "  - {name: flow, pattern: pair, from: h2, to: h1, size: 5KB}\n",
        "traffic.disk.duration=1ms",
        "traffic.disk.count=5000",
    )
    with started(spec) as run:
        assert share_done(run.progress()) == 0
        for now_ns in range(205_000, 1_005_000, 200_000):
            run.run_until(now_ns)
            expected = (now_ns - 5_000) / 1_000_000
            assert share_done(run.progress()) == pytest.approx(expected, abs=0.1)
        finish(run)
        end = run.progress()
        flows = run.observe().flows
    assert end.bytes_done == end.bytes_total == sum(flow.bytes for flow in flows)
    assert end.flows_done == end.flows_total == len(flows)


@pytest.mark.parametrize("recovery", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("fabric", FABRICS)
def test_every_block_arrives_despite_losses(fabric: str, recovery: str) -> None:
    """Two queues in both directions, with keys that are invalidated; every byte is compared."""
    took, (reads, writes) = took_ns(
        fabric,
        "traffic.0.reads=60%",
        "traffic.0.block=20000",
        "traffic.0.count=50",
        "traffic.0.depth=5",
        "traffic.0.queues=2",
        "traffic.0.invalidate=true",
        f"hosts.nic.recovery={recovery}",
        "hosts.nic.timeout=8",
        "faults=[{loss: {cable: 's1:h1', every: 37}}]",
    )
    assert len(took) == 100
    assert (reads.latency.requests, writes.latency.requests) == (60, 40)
    assert reads.latency.unfinished == writes.latency.unfinished == 0


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((READS,), {"SEND": 6, "WRITE": 3}),
        ((READS, "traffic.0.invalidate=true"), {"SEND": 3, "WRITE": 3, "INVALIDATE": 3}),
        ((WRITES, FETCHED), {"SEND": 6, "READ": 3}),
    ],
    ids=["read", "read, invalidated", "write"],
)
def test_tshark_sees_the_operations_of_a_queue(
    settings: tuple[str, ...], expected: dict[str, int], tmp_path: Path
) -> None:
    """By tshark's names of opcodes; a queue is two queue pairs in every case."""
    spec = spec_of(STORAGE, "traffic.0.count=3", "capture=['s1:h1']", *settings)
    captures = VirtualRunner().run(spec, out=tmp_path).captures
    fields = ("infiniband.bth.opcode", "ip.dst", "infiniband.bth.destqp", "_ws.malformed")
    command = ["tshark", "-r", str(captures["s1:h1"]), "-T", "fields"]
    command += [part for field in fields for part in ("-e", field)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    named = {4: "SEND", 10: "WRITE", 12: "READ", 23: "INVALIDATE"}
    opcodes = Counter(named.get(int(opcode), "") for opcode, *_ in rows)
    opcodes.pop("", None)
    assert opcodes == expected
    assert len({(host, qp) for _, host, qp, _ in rows}) == 2
    assert not any(malformed for *_, malformed in rows)
