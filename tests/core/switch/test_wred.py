"""The WRED curve, and the packets that it marks."""

from __future__ import annotations

from collections import Counter

import pytest

from emu._core import lib
from tests.support.frames import frames_of
from tests.support.pause_frames import pfc_frame
from tests.support.small_fabrics import INCAST, ONE_SWITCH, PAIR, outcome_of, port, spec_of, started

PMAX = 2**32 // 5


@pytest.mark.parametrize(
    ("depth", "probability"),
    [(0, 0.0), (100_000, 0.0), (100_001, 0.0), (250_000, 0.1), (399_999, 0.2), (400_000, 1.0)],
)
def test_curve_is_zero_then_linear_then_one(depth: int, probability: float) -> None:
    """Kmin 100 KB, Kmax 400 KB, Pmax 20 %: checked at evenly spaced random numbers."""
    draws = 10_000
    marked = sum(
        lib.core_wred_marks(100_000, 400_000, PMAX, depth, (i * 2**32) // draws)
        for i in range(draws)
    )
    assert marked / draws == pytest.approx(probability, abs=2 / draws)


def test_marks_lead_to_cnps_and_fewer_pauses() -> None:
    """Every CE mark is counted at the receiver, and every CNP at its sender."""
    without = outcome_of(INCAST, "switches.pfc={xoff: 96KB}")
    with_ecn = outcome_of(
        INCAST, "switches.pfc={xoff: 96KB}", "switches.ecn={}", "hosts.nic.cc=dcqcn"
    )
    assert without.total("ecn_marked") == 0
    assert with_ecn.total("ecn_marked") > 0
    seen = sum(host["np_ecn_marked_roce_packets"] for host in with_ecn.hosts.values())
    assert seen == with_ecn.total("ecn_marked")
    cnps = sum(host["np_cnp_sent"] for host in with_ecn.hosts.values())
    assert 0 < cnps == sum(host["rp_cnp_handled"] for host in with_ecn.hosts.values())
    assert with_ecn.total("tx_pause_frames") < without.total("tx_pause_frames")


HELD = (
    ONE_SWITCH
    + """
traffic:
  - {name: fill, pattern: incast, from: h2-h5, to: h1, op: write, size: 100KB}
switches: {buffer: 4MB, ecn: {kmin: 50KB, kmax: 250KB, pmax: 40%}}
"""
)
"""A queue that fills to 400 KB while its port is held, and drains."""


def depths_and_marks(*settings: str) -> tuple[list[int], list[int]]:
    """The depth that each data packet found at s1:h1 (enqueue) or left (dequeue), and its mark.

    Both follow from the capture of the port alone: the queue filled before the port was released.
    """
    with started(spec_of(HELD + "capture: [s1:h1]\n", *settings)) as run:
        frame = pfc_frame(3, 0xFFFF)
        index = run.fabric.index[port(run, "h1:s1")]
        assert lib.fabric_inject(run.fabric.core, index, 0, frame, len(frame))
        run.run_until(100_000)
        frame = pfc_frame(3, 0)
        assert lib.fabric_inject(run.fabric.core, index, 0, frame, len(frame))
        run.run_until(200_000)
        packets = [bytes_ for _, bytes_ in frames_of(run.fabric.captured()) if len(bytes_) > 200]
    ahead = [sum(map(len, packets[:n])) for n in range(len(packets))]
    behind = [sum(map(len, packets[n + 1 :])) for n in range(len(packets))]
    marks = [packet[15] & 3 == 3 for packet in packets]
    return (behind if "switches.ecn.at=dequeue" in settings else ahead), list(map(int, marks))


@pytest.mark.parametrize("at", ["enqueue", "dequeue"])
def test_marks_follow_the_curve_at_enqueue_and_dequeue(at: str) -> None:
    """Over twenty seeds, each bucket of 25 KB is within five standard deviations."""
    marked, seen = Counter[int](), Counter[int]()
    for seed in range(20):
        held = ("switches.pfc={xoff: 200KB}", f"switches.ecn.at={at}", f"seed={seed}")
        for depth, mark in zip(*depths_and_marks(*held), strict=True):
            seen[depth // 25_000] += 1
            marked[depth // 25_000] += mark
    assert len(seen) > 12
    for bucket, count in seen.items():
        middle = bucket * 25_000 + 12_500
        p = 0.4 * (middle - 50_000) / 200_000 if middle < 250_000 else 1.0
        p = max(0.0, p)
        assert abs(marked[bucket] - count * p) <= 5 * (count * p * (1 - p)) ** 0.5 + 1


def test_queue_can_have_its_own_curve_or_none() -> None:
    """Keys that it does not set are those of all queues."""
    spec = spec_of(PAIR, "switches.ecn={kmin: 9KB, queues: {3: {kmax: 20KB}, 4: off}}")
    ecn = spec.port(spec.topology.build().port_named["left:right"])
    assert ecn.ecn is not None
    three, four, five = (ecn.ecn.curve(queue) for queue in (3, 4, 5))
    assert three is not None
    assert (three.kmin_bytes, three.kmax_bytes, three.pmax) == (9_000, 20_000, 0.2)
    assert four is None
    assert five is not None
    assert five.kmax_bytes == 36_000
    assert outcome_of(INCAST, "switches.ecn={queues: {3: off}}").total("ecn_marked") == 0
    assert outcome_of(INCAST, "switches.ecn={queues: {0: off}}").total("ecn_marked") > 0
