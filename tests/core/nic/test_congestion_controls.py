"""DCTCP and Swift in a fabric: rate, fairness, queue depth, and congestion signals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from emu.report.run_view import RunFacts
from emu.runtime.virtual import VirtualFabric, VirtualRunner
from emu.spec.model import load_spec
from emu.wire.crc import icrc_ib
from tests.support.frames import frames_of
from tests.support.small_fabrics import (
    INCAST,
    PAIR,
    finish,
    outcome_of,
    shortest_paths,
    spec_of,
    star,
    started,
)

CONTROLS = Path(__file__).parents[3] / "topologies" / "controls.emu.yml"
RATE_BPS = 100e9
MTU = 4096
ROCE_WIRE, ROCE_FRAME, ACK_WIRE = MTU + 82, MTU + 58, 86
"""Bytes of a packet in the middle of a message on the cable and in a queue, and of an ACK on the
cable."""
BECN = 0x40
LONG = (
    star(9)
    + """
payload: elided
switches: {pfc: on, buffer: 8MB}
traffic: [{name: f, pattern: incast, from: h2-h9, to: h1, op: write, size: 8MB}]
"""
)
"""Eight hosts write to the ninth for five milliseconds."""

DCTCP = ("hosts.nic.cc=dctcp",)
SWIFT = ("hosts.nic.cc=swift",)


def step_at(k: str) -> str:
    return f"switches.ecn={{kmin: {k}, kmax: {k}, pmax: 100%}}"


def depths(run: VirtualFabric, since_ns: int, until_ns: int) -> NDArray[np.int64]:
    """Bytes queued towards h1, once per microsecond."""
    seen = []
    for now in range(since_ns, until_ns, 1_000):
        run.run_until(now)
        seen.append(sum(run.port("s1:h1").queued_bytes))
    return np.array(seen)


def delivered(run: VirtualFabric, senders: int) -> NDArray[np.int64]:
    """Packets that the receiver has, for each flow."""
    return np.array([run.queue_pair(f"f.h{n}-h1").received for n in range(2, 2 + senders)])


def jain(shares: NDArray[np.int64]) -> float:
    return float(shares.sum() ** 2 / (len(shares) * (shares**2).sum()))


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize("cc", ["dctcp", "swift"])
def test_lone_flow_reaches_the_line_rate(cc: str, fabric: str) -> None:
    """The window does not limit the flow, and stays below two BDPs."""
    setting = "traffic.0.size=8MB"
    with started(spec_of(PAIR, f"hosts.nic.cc={cc}", f"fabric={fabric}", setting)) as run:
        run.run_until(300_000)
        before = run.queue_pair("flow").received
        run.run_until(400_000)
        wire = ROCE_WIRE if fabric == "roce" else MTU + 26
        packets = run.queue_pair("flow").received - before
        assert packets * wire * 8 / 100e-6 == pytest.approx(RATE_BPS, rel=0.01)
        bdp = RATE_BPS / 8 * 10e-6 / wire
        assert run.queue_pair("flow").window < 2 * bdp


@pytest.mark.parametrize("settings", [(*DCTCP, step_at("100KB")), SWIFT], ids=["dctcp", "swift"])
def test_later_flow_gets_half_of_the_line(settings: tuple[str, ...]) -> None:
    """The first flow has the line to itself for half a millisecond."""
    later = (
        "traffic=[{name: f, pattern: incast, from: h2, to: h1, op: write, size: 20MB}, "
        "{name: g, pattern: incast, from: h3, to: h1, op: write, size: 20MB, start: 500us}]"
    )
    with started(spec_of(LONG, later, *settings)) as run:
        shares = []
        for now in (1_500_000, 2_500_000):
            run.run_until(now)
            seen = [run.queue_pair(name).received for name in ("f", "g")]
            shares.append(np.array(seen))
        assert jain(shares[1] - shares[0]) > 0.98


@pytest.mark.parametrize("k", [100_000, 200_000, 400_000])
def test_dctcp_holds_the_queue_near_k(k: int) -> None:
    """The line stays busy, the flows share it fairly, and no pause is needed: eight windows
    together vary by a fraction of K."""
    with started(spec_of(LONG, *DCTCP, step_at(str(k)))) as run:
        run.run_until(500_000)
        before = delivered(run, 8)
        seen = depths(run, 500_000, 2_500_000)
        packets = delivered(run, 8) - before
        assert seen.mean() == pytest.approx(k, rel=0.15)
        assert packets.sum() * ROCE_WIRE * 8 / 2e-3 == pytest.approx(RATE_BPS, rel=0.005)
        assert jain(packets) > 0.97
        assert np.quantile(seen, 0.99) < k + 8 * 2 * ROCE_FRAME


@pytest.mark.parametrize("target_us", [10, 20])
def test_swift_keeps_the_round_trip_at_its_target(target_us: int) -> None:
    """The queue delay is the target less the round trip of the empty path."""
    target = f"hosts.nic.swift={{base_target: {target_us}us, fs_range: 0s}}"
    with started(spec_of(LONG, *SWIFT, target)) as run:
        run.run_until(500_000)
        before = delivered(run, 8)
        seen = depths(run, 500_000, 2_500_000)
        packets = delivered(run, 8) - before
    round_trip_us = 2 * (ROCE_WIRE + ACK_WIRE) * 8 / 1e5 + 4 * 0.5 + 2 * 0.6
    queued_us = seen.mean() * ROCE_WIRE / ROCE_FRAME * 8 / 1e5
    assert round_trip_us + queued_us == pytest.approx(target_us, rel=0.1)
    assert packets.sum() * ROCE_WIRE * 8 / 2e-3 == pytest.approx(RATE_BPS, rel=0.005)
    assert jain(packets) > 0.98


def test_swift_paces_flows_below_one_packet_per_rtt() -> None:
    """24 windows of one packet are twice what the empty path holds; pacing goes below that."""
    many = LONG.replace(star(9), star(25)).replace("h2-h9", "h2-h25")
    means = []
    for min_cwnd in (0.01, 1):
        short = f"{{base_target: 5us, fs_range: 0s, initial_cwnd: 1, min_cwnd: {min_cwnd}}}"
        with started(spec_of(many, *SWIFT, f"hosts.nic.swift={short}")) as run:
            run.run_until(500_000)
            means.append(depths(run, 500_000, 1_500_000).mean())
    round_trip = 2 * (ROCE_WIRE + ACK_WIRE) * 8 / 1e5 + 4 * 0.5 + 2 * 0.6
    held = round_trip * RATE_BPS / 8e6 / ROCE_WIRE
    assert means[1] == pytest.approx((24 - held) * ROCE_FRAME, rel=0.1)
    assert means[0] < means[1] / 2


@pytest.mark.parametrize(("fabric", "marks"), [("roce", "ecn"), ("ib", "fecn")])
def test_ack_carries_becn_after_a_marked_packet(fabric: str, marks: str) -> None:
    """No CNP is sent, every BECN is received, and on the cable BECN is bit 6 of the BTH."""
    where = "capture: [s1:h1]\n"
    settings = (*DCTCP, f"fabric={fabric}", f"switches.{marks}=on")
    with started(spec_of(INCAST + where, *settings)) as run:
        seen = finish(run)
        frames = [frame for _, frame in frames_of(run.fabric.captured())]
    total = {
        name: sum(host[name] for host in seen.hosts.values())
        for name in (
            "np_ecn_marked_roce_packets",
            "np_becn_sent",
            "rp_becn_received",
            "np_cnp_sent",
        )
    }
    bth = 42 if fabric == "roce" else 8
    acks = [frame for frame in frames if len(frame) > bth and frame[bth] == 0x11]
    said = [frame for frame in acks if frame[bth + 4] & BECN]
    assert total["np_cnp_sent"] == 0
    assert 0 < len(said) == total["np_becn_sent"] == total["rp_becn_received"]
    assert total["np_becn_sent"] == pytest.approx(total["np_ecn_marked_roce_packets"], rel=0.05)
    if fabric == "ib":
        assert all(icrc_ib(frame[:-6]) == frame[-6:-2] for frame in said)


def test_cct_reacts_to_becn_in_acks() -> None:
    """A FECN is answered by CNPs or by ACKs, and either works without the other."""
    settings = ("fabric=ib", "hosts.nic.cc=cct", "switches.fecn={marking_rate: 0}")
    by_cnp = outcome_of(INCAST, *settings).hosts["h1"]
    by_ack = outcome_of(INCAST, *settings, "hosts.nic.cct.becn=ack").hosts["h1"]
    assert by_cnp["np_cnp_sent"] > 50
    assert by_cnp["np_becn_sent"] == 0
    assert by_ack["np_cnp_sent"] == 0
    assert by_ack["np_becn_sent"] > 20


def test_responder_of_reads_reacts_to_cnps() -> None:
    """READ responses are data: each marked one causes a CNP to the responder."""
    reads = (
        "traffic=["
        + ", ".join(
            f"{{name: r{n}, pattern: pair, from: h1, to: h{n}, op: read, size: 400KB}}"
            for n in range(2, 6)
        )
        + "]"
    )
    outcome = outcome_of(INCAST, reads, "switches.pfc=on", "switches.ecn=on", "hosts.nic.cc=dcqcn")
    handled = [outcome.hosts[f"h{n}"]["rp_cnp_handled"] for n in range(2, 6)]
    assert min(handled) > 0
    assert sum(handled) == outcome.hosts["h1"]["np_cnp_sent"]


def test_receiver_answers_each_sender_by_its_control() -> None:
    """A NIC with DCTCP, one with DCQCN and one without congestion control write to the same
    host."""
    mixed = "hosts={nodes: {h2: {nic: {cc: dctcp}}, h3: {nic: {cc: dcqcn}}}}"
    outcome = outcome_of(INCAST, mixed, "switches.ecn=on", "switches.pfc=on")
    hosts = outcome.hosts
    assert hosts["h2"]["rp_becn_received"] > 0
    assert hosts["h3"]["rp_cnp_handled"] > 0
    assert hosts["h1"]["np_cnp_sent"] == hosts["h3"]["rp_cnp_handled"]
    assert hosts["h1"]["np_becn_sent"] == hosts["h2"]["rp_becn_received"]


@pytest.mark.parametrize("control", ["none", "dcqcn", "dctcp", "swift", "ib-cct"])
def test_comparison_of_controls_passes_its_checks(control: str, tmp_path: Path) -> None:
    """Queue, fairness and completion under each control are as the shipped spec expects."""
    spec = load_spec(CONTROLS, ["payload=elided"]).variants()[control]
    topology = spec.topology.build()
    subnet = shortest_paths(topology) if spec.fabric == "ib" else None
    recording = VirtualRunner(subnet).run(spec, out=tmp_path)
    checks = RunFacts(control, recording, spec, topology).checks
    assert [check.detail for check in checks if not check.passed] == []
    assert len(checks) > 1


@pytest.mark.parametrize("cc", ["dctcp", "swift"])
def test_control_reduces_retransmissions_under_loss(cc: str) -> None:
    """In a switch that drops packets, all messages arrive with fewer retransmissions than without a
    control."""
    lossy = ("switches.buffer=100KB", "hosts.nic.timeout=8", f"hosts.nic.cc={cc}")
    outcome = outcome_of(INCAST, *lossy)
    resent = sum(flow.resent for flow in outcome.flows.values())
    assert resent > 0
    assert all(flow.end_ns for flow in outcome.flows.values())
    without = outcome_of(INCAST, *lossy[:2], "hosts.nic.cc=none")
    assert resent < sum(flow.resent for flow in without.flows.values())


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize("cc", ["dctcp", "swift"])
def test_initial_window_is_the_paths_bdp(cc: str, fabric: str) -> None:
    """A lone flow has line rate at once; with TCP's initial window it takes round trips more."""
    alone = star(2) + "traffic: [{name: f, pattern: pair, from: h1, to: h2, size: 256KB}]\n"
    took = {}
    for name, settings in {
        "none": (),
        "a BDP": (f"hosts.nic.cc={cc}",),
        "one packet": (f"hosts.nic.cc={cc}", f"hosts.nic.{cc}={{initial_cwnd: 1}}"),
    }.items():
        with started(spec_of(alone, f"fabric={fabric}", *settings)) as run:
            (flow,) = finish(run).flows.values()
            took[name] = flow.end_ns or 0
    assert took["a BDP"] == pytest.approx(took["none"], rel=0.01)
    assert took["one packet"] > 1.3 * took["none"]


def test_window_grows_with_the_path_length() -> None:
    """With ten times the cable length, ten times the packets are in flight: both flows have line
    rate at once."""
    for delay_us in (1, 10):
        alone = star(2) + "traffic: [{name: f, pattern: pair, from: h1, to: h2, size: 1MB}]\n"
        far = [link.replace("500ns", f"{delay_us}us") for link in alone.splitlines(keepends=True)]
        with started(
            spec_of("".join(far), "hosts.nic.cc=swift", "hosts.nic.swift=" + SLACK)
        ) as run:
            (flow,) = finish(run).flows.values()
        wire_ns = -(-1_000_000 // MTU) * ROCE_WIRE * 8e9 / RATE_BPS
        assert flow.end_ns == pytest.approx(wire_ns + 2 * delay_us * 1000 + 1000, rel=0.02)


SLACK = "{base_target: 100us}"
"""A target above any round trip here, so that the window does not shrink."""
