"""A run under external control: step, observe, inject a frame, go on."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from emu.errors import UsageError
from emu.runtime import virtual
from emu.runtime.virtual import VirtualFabric, VirtualRunner
from tests.support.pause_frames import pfc_frame
from tests.support.small_fabrics import INCAST, PAIR, finish, spec_of, started

ROOT = Path(__file__).parents[2]
MTU_FRAME = 4096 + 58
"""Bytes in a switch's buffer of a packet in the middle of a message: Ethernet 14, IPv4 20, UDP 8,
BTH 12, ICRC 4."""


def test_docstring_example_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testmod(virtual, verbose=False)
    assert (failed, tried > 5) == (0, True)


def test_step_length_does_not_change_the_run() -> None:
    """Ten thousand steps of 10 ns, and one of 100 us: observations in between change nothing."""
    seen = []
    for step_ns in (10, 100_000):
        with started(spec_of(INCAST, "switches.pfc={xoff: 96KB}")) as run:
            while run.now_ns < 100_000:
                run.run_until(run.now_ns + step_ns)
                run.port("s1:h1")
            seen.append((run.now_ns, run.observe().ports))
    assert seen[0][0] == seen[1][0] == 100_000
    assert seen[0][1] == seen[1][1]


def test_incast_queue_grows_by_the_excess_rate() -> None:
    """Four senders of 100 Gb/s into one port of 100 Gb/s: three in four bytes wait."""
    with started(spec_of(INCAST)) as run:
        run.run_until(10_000)
        first = run.port("s1:h1").queued_bytes[3]
        run.run_until(12_000)
        second = run.port("s1:h1").queued_bytes[3]
    arrived = 2_000 * 100 / 8 * (MTU_FRAME / (MTU_FRAME + 24))
    assert second - first == pytest.approx(3 * arrived, abs=4 * MTU_FRAME)


def test_held_bytes_are_queued_or_in_the_pipeline() -> None:
    """Bytes by ingress port, summed, compared with bytes by egress port."""
    with started(spec_of(INCAST)) as run:
        run.run_until(10_000)
        held = sum(sum(run.port(f"s1:h{n}").held_bytes) for n in range(1, 6))
        queued = sum(sum(run.port(f"s1:h{n}").queued_bytes) for n in range(1, 6))
    # 600 ns of 100 Gb/s and one more frame from each sender, and one frame in transmission.
    on_the_way = 4 * (7_500 + MTU_FRAME) + MTU_FRAME
    assert 0 < held - queued <= on_the_way


def test_queue_pair_shows_packets_in_flight() -> None:
    """On an idle path: during the run some are in flight, at the end none."""
    with started(spec_of(PAIR)) as run:
        run.run_until(40_000)
        sender = run.queue_pair("flow")
        assert 0 < sender.acknowledged <= sender.received < sender.next == sender.sent
        assert sender.in_flight == sender.next - sender.acknowledged
        assert sender.rate_bps == 100_000_000_000
        finish(run)
        sender = run.queue_pair("flow")
    packets = -(-1_000_000 // 4096)
    assert (sender.posted, sender.next, sender.received) == (packets, packets, packets)
    assert not sender.failed


def test_queue_pair_rate_shows_congestion_control() -> None:
    with started(spec_of(INCAST, "switches.ecn={kmin: 100KB}", "hosts.nic.cc=dcqcn")) as run:
        run.run_until(60_000)
        rates = [run.queue_pair(f"incast.h{n}-h1").rate_bps for n in range(2, 6)]
    assert all(rate < 100_000_000_000 for rate in rates)


def test_credit_starts_at_the_buffer_and_shrinks() -> None:
    """No credit until the first update has crossed the cable; then credit for the whole buffer."""
    buffer = 32 * 1024
    with started(spec_of(PAIR, "fabric=ib", f"switches.credits.buffer={buffer}")) as run:
        assert run.port("left:right").credit_bytes[0] == 0
        run.run_until(501)
        assert run.port("left:right").credit_bytes[0] == buffer
        run.run_until(3_000)
        left = run.port("left:right").credit_bytes[0]
        held = run.port("right:left").held_bytes[0]
    assert left < buffer
    assert held <= buffer - left


def test_injected_pause_stops_the_port_it_reaches() -> None:
    with started(spec_of(PAIR, "switches.pfc={xoff: 96KB}")) as run:
        run.run_until(20_000)
        run.inject("h2:right", pfc_frame(3, 0xFFFF))
        assert not run.port("right:h2").paused[3]  # still on the cable
        run.run_until(20_600)
        paused = run.port("right:h2").paused
    assert paused == (False, False, False, True, False, False, False, False)


UNKNOWN = {"roce": bytes(76), "ib": b"\xf0" + bytes(99)}
"""A frame that the next switch drops. Both keep the line busy for 100 bytes: on Ethernet 24 of them
are FCS, preamble and gap; the management lane of InfiniBand needs no credit."""


@pytest.mark.parametrize("fabric", UNKNOWN)
@pytest.mark.parametrize("at", ["h1:left", "left:right", "right:h2"])
@pytest.mark.parametrize("times", [1, 3])
def test_injected_frame_delays_a_sender_by_its_length(fabric: str, at: str, times: int) -> None:
    """Packets of one length without gaps on any line: 8 ns of 100 Gb/s for each injected frame."""
    alike = PAIR.replace("op: write, size: 1MB", f"op: send, size: {244 * 4096}")
    ends = []
    for injected in (0, times):
        with started(spec_of(alike, f"fabric={fabric}")) as run:
            run.run_until(10_000)
            for _ in range(injected):
                run.inject(at, UNKNOWN[fabric])
            ends.append(finish(run).last_end_ns)
    assert ends[1] - ends[0] == 8 * times


def test_packet_waits_for_the_end_of_an_injected_frame() -> None:
    """Of two packets at an idle port, the second leaves later by as much as the frame came later.

    The port has sent the first packet long before, and releases its buffer only once.
    """
    two = PAIR.replace("op: write, size: 1MB", "op: send, size: 4096, count: 2")
    ends = []
    for at_ns in range(6_500, 9_000, 100):
        with started(spec_of(two)) as run:
            run.run_until(at_ns)
            run.inject("left:right", bytes(4_000))  # 4024 bytes, 322 ns
            ends.append(finish(run).last_end_ns)
            assert not any(run.port("left:h1").held_bytes)
    undisturbed = min(ends)
    delayed = [end for end in ends if end > undisturbed]
    assert len(delayed) in (3, 4)
    assert np.diff(delayed).tolist() == [100] * (len(delayed) - 1)
    assert 222 <= delayed[-1] - undisturbed <= 322


def test_injected_frame_does_not_hold_a_sent_packet() -> None:
    """A packet leaves the buffer with its last bit, whatever the port sends next."""
    held = []
    for injected in (False, True):
        with started(spec_of(PAIR)) as run:
            run.run_until(10_000)
            if injected:
                run.inject("left:right", bytes(4_000))
            run.run_until(10_335)  # one packet's serialisation later
            held.append(run.port("left:h1").held_bytes[3])
    assert held[0] == held[1] > 0


def test_datagrams_count_as_received_in_any_order() -> None:
    """The cable loses every fifth of 20."""
    traffic = "op: send, transport: ud, size: 1KB, count: 20"
    lossy = PAIR.replace("op: write, size: 1MB", traffic) + (
        "faults: [{loss: {cable: 'h1:left', direction: out, every: 5}}]\n"
    )
    with started(spec_of(lossy)) as run:
        run.run_until(50_000)
        sender = run.queue_pair("flow")
    assert (sender.posted, sender.sent, sender.acknowledged, sender.received) == (20, 20, 20, 16)


def test_fabric_starts_only_once() -> None:
    """The second start is refused, and changes nothing."""
    ends = []
    for again in (False, True):
        with started(spec_of(PAIR)) as run:
            run.run_until(1_000)
            if again:
                with pytest.raises(UsageError, match="this fabric has already started"):
                    run.start()
            ends.append(finish(run).last_end_ns)
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("fabric=ib", r"^subnet: none is given.*emu\.subnet\.sm_sweeps\.manage makes them$"),
        ("hosts.stack=tcp", r"^stack: tcp is the TCP of this machine's kernel"),
    ],
)
def test_unsupported_spec_is_refused_by_the_virtual_clock(setting: str, said: str) -> None:
    spec = spec_of(PAIR, setting)
    with pytest.raises(UsageError, match=said):
        VirtualFabric(spec, spec.topology.build())


def test_observation_before_the_start_is_empty() -> None:
    """No samples, no packets, only the planned flows. The run afterwards is unchanged."""
    spec = spec_of(PAIR)
    with VirtualFabric(spec, spec.topology.build()) as run:
        seen = run.observe()
        assert len(seen.samples.time_ns) == 0
        assert seen.samples.queue_bytes.shape == (0, len(seen.ports))
        assert [flow.end_ns for flow in seen.flows] == [None]
        assert not any(map(any, seen.ports["left:h1"].values()))
        run.start()
        assert finish(run).flows["flow"].completed


LOOKS: dict[str, Callable[[VirtualFabric], object]] = {
    "finished": lambda run: run.finished,
    "now_ns": lambda run: run.now_ns,
    "observe": lambda run: run.observe(),
    "progress": lambda run: run.progress(),
    "port": lambda run: run.port("left:h1"),
    "queue_pair": lambda run: run.queue_pair("flow"),
    "run_until": lambda run: run.run_until(1),
    "inject": lambda run: run.inject("left:h1", bytes(64)),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_closed_fabric_refuses_every_call(look: Callable[[VirtualFabric], object]) -> None:
    with started(spec_of(PAIR)) as run:
        finish(run)
    with pytest.raises(UsageError, match="this fabric is gone; look at it before the end of"):
        look(run)


def test_unknown_names_are_refused_with_a_hint() -> None:
    with started(spec_of(PAIR)) as run:
        with pytest.raises(UsageError, match=r"no port 'lefft:h1' \(did you mean 'left:h1'\?\)"):
            run.port("lefft:h1")
        with pytest.raises(UsageError, match="no flow 'other'"):
            run.queue_pair("other")
        with pytest.raises(UsageError, match="left:h1 carries no frame of 9000 bytes"):
            run.inject("left:h1", bytes(9000))


def test_progress_interval_does_not_change_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Reported after every step, or as rarely as possible: the same end, samples and capture."""
    spec = spec_of(INCAST, "switches.pfc={}", "capture=[s1:h1]")
    seen, looks = [], []
    looked: list[int] = []
    for name, seconds in (("often", 0.0), ("rarely", 1000.0)):
        monkeypatch.setattr(virtual, "PROGRESS_SECONDS", seconds)
        looked.clear()
        recording = VirtualRunner().run(
            spec,
            out=tmp_path / name,
            on_progress=lambda progress: looked.append(progress.emulated_ns),
        )
        capture = recording.captures["s1:h1"].read_bytes()
        series = recording.series
        seen.append((recording.ports, recording.flows, series.tx_bytes.tobytes(), capture))
        looks.append(len(looked))
    often, rarely = seen
    assert often == rarely
    assert looks[0] > 2 * looks[1]
    assert series.time_ns[-1] % virtual.STEP_NS == 0


@pytest.mark.parametrize("limit", ["1us", "50us", "60us", "1234567ps"])
def test_run_ends_at_its_time_limit(limit: str, tmp_path: Path) -> None:
    """Also in the middle of a step."""
    spec = spec_of(INCAST, f"time_limit={limit}")
    seen: list[int] = []
    VirtualRunner().run(
        spec,
        out=tmp_path,
        on_progress=lambda progress: seen.append(progress.emulated_ns),
    )
    assert seen[-1] == -(-spec.time_limit_ps // 1000)


def test_unread_captures_do_not_stop_a_run() -> None:
    """They fill their memory during the run; later frames are missed."""
    with started(spec_of(INCAST, "switches.pfc={}", "capture=all", "traffic.0.size=2MB")) as run:
        steps = 0
        while not run.finished:
            before_ns = run.now_ns
            run.run_steps(run.now_ns + 10_000_000)
            assert run.now_ns > before_ns
            steps += 1
        assert steps > 1, "the captures never filled their memory"
