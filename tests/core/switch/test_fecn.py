"""InfiniBand's congestion control: which ports mark, which senders react, and how they recover."""

from __future__ import annotations

import pytest

from emu.spec.congestion_control.cct import encoded_delay
from emu.wire.crc import icrc_ib, vcrc
from tests.support.frames import frames_of
from tests.support.small_fabrics import INCAST, PAIR, outcome_of, spec_of, star, started

IB = ("fabric=ib", "hosts.nic.cc=cct")
LRH_BYTES, VCRC_BYTES = 8, 2
FECN = 0x80


def test_root_of_congestion_marks_and_gets_one_becn_each() -> None:
    """Only the port to the receiver marks, and the senders receive one BECN for each mark."""
    outcome = outcome_of(INCAST, *IB, "switches.fecn={marking_rate: 0}")
    marked = {name: sum(own["fecn_marked"]) for name, own in outcome.ports.items()}
    assert marked["s1:h1"] > 50
    assert sum(marked.values()) == marked["s1:h1"]
    assert outcome.hosts["h1"]["np_cnp_sent"] == marked["s1:h1"]
    handled = sum(outcome.hosts[f"h{n}"]["rp_cnp_handled"] for n in range(2, 6))
    assert handled == marked["s1:h1"]


def test_a_port_may_have_its_own_fecn_settings() -> None:
    outcome = outcome_of(INCAST, *IB, "switches.fecn=on", "switches.ports={h1: {fecn: off}}")
    assert sum(sum(own["fecn_marked"]) for own in outcome.ports.values()) == 0
    outcome = outcome_of(INCAST, *IB, "switches.ports={h1: {fecn: on}}")
    assert sum(outcome.ports["s1:h1"]["fecn_marked"]) > 0


def test_victim_port_does_not_mark() -> None:
    """left's queue is deep because it waits for credit of right; it marks only if victim_mask says
    so."""
    text = """
topology:
  kind: dumbbell
  hosts_per_side: 4
  links: {host: {rate: 100Gbit, delay: 50ns}, fabric: {rate: 400Gbit, delay: 50ns}}
traffic: [{name: hot, pattern: incast, from: h1-h4, to: h5, op: write, size: 1MB}]
"""
    for mask, marks in (("hosts", False), ("all", True)):
        fecn = f"switches.fecn={{threshold: 8, marking_rate: 0, victim_mask: {mask}}}"
        outcome = outcome_of(text, "fabric=ib", fecn)
        assert sum(outcome.ports["right:h5"]["fecn_marked"]) > 100
        assert (sum(outcome.ports["left:right"]["fecn_marked"]) > 10) is marks


def test_lane_marks_by_the_size_of_its_own_buffer() -> None:
    """The threshold is half of 16 KiB; credit keeps the queue below half of the other lanes' 128
    KiB."""
    settings = (
        "fabric=ib",
        "switches.credits={vls: 2, buffer: 128KiB, lanes: {1: 16KiB}}",
        "subnet.vl_arbitration={high: {}, low: {0: 64, 1: 64}}",
        "switches.fecn={threshold: 8, marking_rate: 0}",
    )
    text = star(3) + "traffic: [{name: hot, pattern: incast, from: h2-h3, to: h1, op: write, "
    for sl, marks in ((1, True), (0, False)):
        outcome = outcome_of(f"{text}size: 60KB, priority: {sl}}}]\n", *settings)
        assert sum(outcome.ports["s1:h1"]["queue_peak_bytes"]) < 64 * 1024
        assert (sum(outcome.ports["s1:h1"]["fecn_marked"]) > 2) is marks


@pytest.mark.parametrize("rate", [0, 1, 9])
def test_marking_rate_sets_the_packets_between_marks(rate: int) -> None:
    """Senders without congestion control keep the queue over the threshold almost from the
    start."""
    fecn = f"switches.fecn={{marking_rate: {rate}}}"
    outcome = outcome_of(INCAST, "fabric=ib", fecn)
    marked = sum(outcome.ports["s1:h1"]["fecn_marked"])
    packets = sum(outcome.ports["s1:h1"]["tx_packets"])
    assert marked == pytest.approx(packets / (rate + 1), rel=0.1)


def test_packets_below_packet_size_are_never_marked() -> None:
    """Packets of 4122 bytes are larger than 64 units of 64 bytes, and smaller than 65."""
    for size, marks in ((64, True), (65, False)):
        outcome = outcome_of(
            INCAST, "fabric=ib", f"switches.fecn={{marking_rate: 0, packet_size: {size}}}"
        )
        assert (sum(outcome.ports["s1:h1"]["fecn_marked"]) > 2) is marks


def test_mark_keeps_icrc_and_vcrc_valid() -> None:
    """The ICRC does not cover FECN, and the switch computes the VCRC again."""
    spec = spec_of(INCAST + "capture: [s1:h1]\n", *IB, "switches.fecn={marking_rate: 0}")
    with started(spec) as run:
        run.run_until(60_000)
        frames = [frame for kind, frame in frames_of(run.fabric.captured()) if kind == 1]
    marked = [frame for frame in frames if frame[LRH_BYTES + 4] & FECN]
    assert marked
    for frame in marked:
        assert vcrc(frame[:-VCRC_BYTES]) == frame[-VCRC_BYTES:]
        assert icrc_ib(frame[: -VCRC_BYTES - 4]) == frame[-VCRC_BYTES - 4 : -VCRC_BYTES]


@pytest.mark.parametrize("delay", [7, 15, 31])
def test_cct_delay_limits_the_rate(delay: int) -> None:
    """One BECN suffices for the last index, which lasts for the run: 1 / (1 + delay) of the line
    rate."""
    table = f"hosts.nic.cct={{cct: [0, {delay}], ccti_timer: 60000}}"
    outcome = outcome_of(INCAST, *IB, table, "switches.fecn={marking_rate: 0}")
    goodputs = [flow.goodput_bps for flow in outcome.flows.values()]
    assert goodputs == pytest.approx([100e9 * 4096 / 4122 / (1 + delay)] * 4, rel=0.2)


@pytest.mark.parametrize("entry", [0, 1, 2])
def test_queue_pair_starts_at_ccti_min(entry: int) -> None:
    """Without congestion the rate is 1 / (1 + delay) of the line from the first packet to the
    last."""
    delays = [0, 1, 3]
    table = f"hosts.nic.cct={{cct: {delays}, ccti_min: {entry}}}"
    outcome = outcome_of(PAIR, *IB, table, "traffic.0.size=10MB")
    expected = 100e9 * 4096 / 4122 / (1 + delays[entry])
    assert outcome.flows["flow"].goodput_bps == pytest.approx(expected, rel=0.01)


def test_ccti_falls_by_one_per_timer() -> None:
    """A long timer keeps senders slow for longer than the congestion lasts."""
    outcome = outcome_of(
        INCAST, *IB, "switches.fecn={marking_rate: 0}", "hosts.nic.cct.ccti_timer=5"
    )
    slow = outcome_of(
        INCAST, *IB, "switches.fecn={marking_rate: 0}", "hosts.nic.cct.ccti_timer=500"
    )
    assert outcome.last_end_ns < 0.7 * slow.last_end_ns


def test_table_entries_are_encoded_by_the_standard() -> None:
    """A multiplier of 14 bits, and above it the number of bits by which it is shifted right."""
    assert [encoded_delay(delay) for delay in (0, 3, 0.5, 0.125, 16383)] == [
        0,
        3,
        1 << 14 | 1,
        3 << 14 | 1,
        16383,
    ]
    assert encoded_delay(0.1) is None
    assert encoded_delay(16384) is None
