"""Priority flow control, frame by frame, with frames built by scapy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from emu._core import lib
from emu.measure.counters import ethernet_counters
from emu.runtime.virtual import VirtualFabric
from emu.spec.headroom import headroom_of, reserved_of
from emu.spec.model import Spec
from tests.support.pause_frames import global_pause_frame, pfc_frame
from tests.support.small_fabrics import (
    ONE_SWITCH,
    PAIR,
    finish,
    outcome_of,
    outcome_so_far,
    port,
    spec_of,
    started,
)
from topologies.graph import Port

QUANTUM_NS_AT_100G = 5.12


def inject(run: VirtualFabric, at: str, frame: bytes) -> None:
    assert lib.fabric_inject(run.fabric.core, run.fabric.index[port(run, at)], 0, frame, len(frame))


def sent(run: VirtualFabric, at: str, priority: int) -> int:
    packets: list[int] = outcome_so_far(run).ports[at]["tx_packets"]
    return packets[priority]


def test_pause_frame_stops_a_port_for_its_quanta() -> None:
    """1000 quanta at 100 Gb/s are 5.12 us: nothing leaves in that time, the next packet right after
    it."""
    spec = spec_of(PAIR, "switches.pfc={xoff: 96KB}")
    with started(spec) as run:
        run.run_until(20_000)
        inject(run, "h2:right", pfc_frame(3, 1000))
        run.run_until(21_000)  # the frame has arrived, the current packet has left
        before = sent(run, "right:h2", 3)
        run.run_until(20_500 + 5_120)
        assert sent(run, "right:h2", 3) == before
        run.run_until(20_500 + 5_120 + 100)
        assert sent(run, "right:h2", 3) == before + 1
        outcome = finish(run)
    counters = outcome.ports["right:h2"]
    assert counters["rx_pause"][3] == 1
    assert counters["rx_pause_duration"][3] == 5_120_000
    assert outcome.flows["flow"].completed


def test_zero_quanta_resume_at_once() -> None:
    """XON ends a pause long before its quanta have run out."""
    with started(spec_of(PAIR, "switches.pfc={xoff: 96KB}")) as run:
        run.run_until(20_000)
        inject(run, "h2:right", pfc_frame(3, 0xFFFF))
        run.run_until(22_000)
        paused = sent(run, "right:h2", 3)
        inject(run, "h2:right", pfc_frame(3, 0))
        run.run_until(24_000)
        assert sent(run, "right:h2", 3) > paused


def test_pause_of_another_priority_stops_nothing() -> None:
    with started(spec_of(PAIR, "switches.pfc={xoff: 96KB}")) as run:
        run.run_until(20_000)
        inject(run, "h2:right", pfc_frame(5, 0xFFFF))
        outcome = finish(run)
    assert outcome.flows["flow"].completed
    assert outcome.ports["right:h2"]["rx_pause"][5] == 1


def test_switch_without_pfc_ignores_pause_frames() -> None:
    """The switch counts the frame and pauses nothing."""
    with started(spec_of(PAIR)) as run:
        run.run_until(20_000)
        inject(run, "h2:right", pfc_frame(3, 0xFFFF))
        outcome = finish(run)
    assert outcome.ports["right:h2"]["rx_pause_duration"][3] == 0
    assert outcome.flows["flow"].completed


def test_pause_acts_after_the_response_time() -> None:
    """1000 quanta are 5.12 us from the frame's arrival; the port still sends in the first 2 us of
    them."""
    with started(spec_of(PAIR, "switches.pfc={xoff: 96KB}", "switches.pause_response=2us")) as run:
        run.run_until(20_000)
        inject(run, "h2:right", pfc_frame(3, 1000))
        run.run_until(20_500 + 1_700)
        assert sent(run, "right:h2", 3) > 0
        run.run_until(20_507 + 2_000)  # the last packet has begun
        before = sent(run, "right:h2", 3)
        run.run_until(20_500 + 5_100)
        assert sent(run, "right:h2", 3) == before
        outcome = finish(run)
    assert outcome.ports["right:h2"]["rx_pause_duration"][3] == 5_120_000 - 2_000_000


GLOBAL = "switches.pfc={frames: pause, xoff: 96KB}"


def test_global_pause_stops_all_priorities_where_enabled() -> None:
    """A port with 802.3x obeys it; a port with PFC counts it and sends on."""
    for setting, stopped in ((GLOBAL, True), ("switches.pfc={xoff: 96KB}", False)):
        with started(spec_of(PAIR, setting, "hosts.nic.dscp=10")) as run:
            run.run_until(20_000)
            inject(run, "h2:right", global_pause_frame(1000))
            run.run_until(21_000)
            before = sent(run, "right:h2", 1)
            run.run_until(25_000)
            assert (sent(run, "right:h2", 1) == before) == stopped
            assert outcome_so_far(run).ports["right:h2"]["rx_global_pause"] == [1]


@pytest.mark.parametrize("response", ["0ns", "2us"])
def test_global_pause_time_agrees_in_series_and_counters(response: str) -> None:
    """1000 quanta at 100 Gb/s, less the response time, count once whatever happens between; a
    second pause during the first extends it."""
    with started(spec_of(PAIR, GLOBAL, f"switches.pause_response={response}")) as run:
        run.run_until(20_000)
        inject(run, "h2:right", global_pause_frame(1000))
        run.run_until(23_000)
        inject(run, "h2:right", global_pause_frame(1000))
        finish(run)
        seen = run.observe()
    paused_ns = 3_000 + 5_120 - (2_000 if response == "2us" else 0)
    place = seen.samples.ports.index("right:h2")
    assert seen.samples.paused_ns[-1, place] == paused_ns
    raw = seen.ports["right:h2"]
    assert raw["paused"] == [1000 * paused_ns]  # what `emu watch` shows
    counters = ethernet_counters(seen.ports)["right:h2"]
    assert counters["rx_global_pause_duration"] == paused_ns // 1000


@pytest.mark.parametrize(("setting", "priorities"), [("{priorities: [3, 4]}", 2), ("{}", 1)])
def test_pause_time_adds_up_over_priorities(setting: str, priorities: int) -> None:
    """PFC pauses priorities, so two of them for 5.12 us each are 10.24 us. An 802.3x pause between
    them, which the port ignores, changes neither series nor counters."""
    with started(spec_of(PAIR, f"switches.pfc={setting}")) as run:
        run.run_until(20_000)
        for priority in (3, 4):
            inject(run, "h2:right", pfc_frame(priority, 1000))
        inject(run, "h2:right", global_pause_frame(1000))
        finish(run)
        seen = run.observe()
    place = seen.samples.ports.index("right:h2")
    assert seen.samples.paused_ns[-1, place] == 5_120 * priorities
    counters = ethernet_counters(seen.ports)["right:h2"]
    assert counters["rx_prio3_pause_duration"] == 5
    assert counters["rx_global_pause"] == 1
    assert "rx_global_pause_duration" not in counters


INCAST = (
    ONE_SWITCH
    + "traffic: [{name: incast, pattern: incast, from: h2-h5, to: h1, op: write, size: 400KB}]\n"
)


def test_computed_headroom_is_enough_and_less_drops() -> None:
    """With the computed headroom a lossless priority loses nothing; with too little for the frames
    in flight it drops."""
    roomy = outcome_of(INCAST, "switches.pfc={xoff: 96KB}")
    assert roomy.total("tx_pause") > 0
    assert roomy.total("rx_buf_discard") == 0
    # Frames in flight when XOFF is decided: three in 1 us of cable, both ways.
    tight = outcome_of(INCAST, "switches.pfc={xoff: 96KB, headroom: 12KB}")
    assert tight.total("rx_buf_discard") > 0


def test_global_pause_keeps_an_incast_lossless() -> None:
    """With the thresholds of PFC, but 802.3x frames and not one PFC frame."""
    outcome = outcome_of(INCAST, GLOBAL)
    assert outcome.total("tx_global_pause") == outcome.total("tx_pause_frames") > 0
    assert outcome.total("tx_pause") == outcome.total("rx_buf_discard") == 0
    assert all(flow.completed for flow in outcome.flows.values())


BOTTLENECK = """
topology:
  kind: graph
  switches: [left, right]
  hosts: [h1, h2, h3, h4, h5, h6, h7]
  links:
    - {between: [left, right], rate: 100Gbit, delay: 700ns}
    - {between: [left, h1], rate: 100Gbit}
    - {between: [left, h2], rate: 100Gbit}
    - {between: [left, h3], rate: 100Gbit}
    - {between: [left, h4], rate: 100Gbit}
    - {between: [right, h5], rate: 1Gbit}
    - {between: [right, h6], rate: 100Gbit}
    - {between: [right, h7], rate: 100Gbit}
traffic:
  - {name: there, pattern: incast, from: h1-h2, to: h5, op: write, size: 2MB}
  - {name: back, pattern: pair, from: h6-h7, to: h3-h4, op: write, size: 40MB, priority: 4}
switches:
  buffer: 4MB
  classes: {dscp: {26: 3, 34: 4}}
  pfc: {priorities: [3, 4], xoff: 96KB, xon: 90KB}
  nodes: {left: {ports: {right: {pause_response: 1us}}}}
time_limit: 8ms
unfinished: allow
"""
"""The right switch pauses the left one repeatedly while it sends large packets to the left, whose
ACKs no pause stops; meanwhile almost nothing leaves to the slow receiver."""

PACKET_WIRE, PACKET_HELD = 4096 + 82, 4096 + 58
"""Bytes of a packet in the middle of a message: on a cable, and in a switch's buffer."""


def bottleneck(*settings: str) -> tuple[int, dict[str, Any], int]:
    """The bound of the headroom at switch right, the counters of the port, and the packets that it
    drops with 4096 bytes less of headroom."""
    bound = headroom_of(spec := spec_of(BOTTLENECK, *settings), port_named(spec, "right:left"))
    enough = outcome_of(BOTTLENECK, *settings)
    assert enough.total("rx_buf_discard") == 0
    less = f"switches.nodes.right.ports.left.pfc.headroom={bound - 4096}"
    short = outcome_of(BOTTLENECK, less, *settings)
    return bound, enough.ports["right:left"], short.ports["right:left"]["rx_buf_discard"][3]


def port_named(spec: Spec, name: str) -> Port:
    return spec.topology.build().port_named[name]


def test_headroom_bound_is_tight_to_one_mtu() -> None:
    """Between two switches, over some twenty pauses; the peak use of headroom is within one packet
    of the bound, and one MTU less drops."""
    bound, port, dropped = bottleneck()
    assert bound == 3 * (4096 + 74 + 24) + 84 + (2 * 700 + 1000) * 100 // 8
    assert bound - 4096 < port["headroom_peak_bytes"][3] <= bound
    assert port["tx_pause"][3] > 40
    assert dropped >= 3


@pytest.mark.parametrize("delay_ns", [660, 680, 740, 800, 820, 840])
def test_headroom_bound_counts_whole_packets(delay_ns: int) -> None:
    """The packet that crosses xoff, and each packet that begins before the pause acts. The bound
    counts their bytes on the cable and all of the last one, so it exceeds their size by less than a
    packet and 24 bytes for each."""
    bound, port, dropped = bottleneck(f"topology.links.0.delay={delay_ns}ns")
    until_obeyed = (4096 + 98) + 84 + (2 * delay_ns + 1000) * 100 // 8
    packets = 1 + -(-until_obeyed // PACKET_WIRE)
    held, acks = port["headroom_peak_bytes"][3], 16 + 3 * 62
    assert packets * PACKET_HELD <= held <= packets * PACKET_HELD + acks
    assert bound - held < PACKET_WIRE + 24 * packets
    assert (dropped > 0) == (held > bound - 4096)


def test_cut_through_leaves_nearly_a_packet_of_headroom() -> None:
    """A cut-through switch decides on a packet at its header; the bound does not rely on that."""
    _, stored, _ = bottleneck("topology.links.0.delay=760ns")
    _, cut, dropped = bottleneck("topology.links.0.delay=760ns", "switches.switching=cut-through")
    more = stored["headroom_peak_bytes"][3] - cut["headroom_peak_bytes"][3]
    assert more == pytest.approx(PACKET_HELD, abs=100)
    assert dropped == 0


def test_dynamic_threshold_shrinks_with_more_ports() -> None:
    """With alpha a, each of n ports that fill the pool holds a / (1 + n a) of it."""
    for senders, alpha in ((2, "1"), (4, "1"), (4, "1/8")):
        fabric = ONE_SWITCH + "traffic: [{name: incast, pattern: incast, op: write, size: 6MB}]"
        hosts = (f"traffic.0.from=h2-h{senders + 1}", "traffic.0.to=h1")
        buffer = ("switches.buffer=4MB", f"switches.pfc={{xoff: alpha {alpha}}}")
        spec = spec_of(fabric, *hosts, *buffer)
        pool = 4_000_000 - reserved_of(spec, "s1")
        a = float(Fraction(alpha))
        expected = pool * a / (1 + senders * a)
        with started(spec) as run:
            held = 0
            while not run.finished:
                run.run_until(run.now_ns + 1_000)
                index = run.fabric.index[port(run, "s1:h2")]
                held = max(held, lib.fabric_held(run.fabric.core, index, 3))
            assert outcome_so_far(run).total("rx_buf_discard") == 0
        headroom = headroom_of(spec, spec.topology.build().port_named["s1:h2"])
        assert expected - 4_200 <= held <= expected + headroom


def test_reserved_bytes_remain_when_the_pool_is_full() -> None:
    """Lossy traffic fills the pool; packets of another port still find room."""
    fabric = (
        ONE_SWITCH
        + """
traffic:
  - {name: flood, pattern: incast, from: h2-h4, to: h1, op: write, size: 4MB, priority: 0}
  - {name: lone, pattern: pair, from: h5, to: h2, op: write, size: 400KB, priority: 1, start: 100us}
switches: {buffer: 1200KB, queue_limit: 1200KB}
"""
    )
    without = outcome_of(fabric)
    reserved = outcome_of(fabric, "switches.reserved=20KB")
    assert without.ports["s1:h5"]["rx_buf_discard"][1] > 0
    assert reserved.ports["s1:h5"]["rx_buf_discard"][1] == 0


def test_lossy_queue_stops_at_its_limit() -> None:
    """The queue never exceeds its limit, and excess packets are dropped at the tail."""
    outcome = outcome_of(INCAST, "switches.queue_limit=100KB")
    assert 100_000 - 4_200 < outcome.ports["s1:h1"]["queue_peak_bytes"][0] <= 100_000
    assert outcome.total("tx_queue_discard") > 0


def test_long_pause_is_refreshed_before_it_expires() -> None:
    """A receiver that stays congested never lets its pause expire."""
    slow_receiver = "topology.links.0.rate=1Gbit"
    outcome = outcome_of(INCAST, "switches.pfc={xoff: 20KB, xon: 10KB}", slow_receiver)
    paused = outcome.ports["s1:h2"]
    assert paused["tx_pause"][3] > 2
    requested, obeyed = (
        paused["tx_pause_duration"][3],
        outcome.ports["h2:s1"]["rx_pause_duration"][3],
    )
    assert requested > 0
    assert abs(requested - obeyed) < 0.01 * requested  # except for the frames' time on the cable
    assert outcome.total("rx_buf_discard") == 0
