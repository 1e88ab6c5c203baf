"""Priority flow control, frame by frame, with frames built by scapy."""

from __future__ import annotations

from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether

from emu._core import lib
from emu.shim.virtual import VirtualFabric
from tests.model.fabrics import ONE_SWITCH, PAIR, finish, look, outcome_of, port, spec_of, started

QUANTUM_NS_AT_100G = 5.12


def pfc_frame(priority: int, quanta: int) -> bytes:
    """A pause frame as another implementation writes it."""
    enable = {f"c{priority}_enabled": 1, f"c{priority}_pause_time": quanta}
    frame = Ether(dst="01:80:c2:00:00:01", src="02:00:00:00:00:09")
    return bytes(frame / MACControlClassBasedFlowControl(**enable))


def inject(run: VirtualFabric, at: str, frame: bytes) -> None:
    assert lib.fabric_inject(run.fabric.core, run.fabric.index[port(run, at)], 0, frame, len(frame))


def sent(run: VirtualFabric, at: str, priority: int) -> int:
    return look(run).ports[at]["tx_packets"][priority]


def test_a_pause_frame_from_a_host_stops_its_leaf_for_its_quanta_and_no_longer() -> None:
    """1000 quanta at 100 Gb/s are 5.12 us: nothing leaves in them, the next packet right after."""
    spec = spec_of(PAIR, "switches.pfc={}")
    with started(spec) as run:
        run.run_until(20_000)
        inject(run, "h2:right", pfc_frame(3, 1000))
        run.run_until(21_000)  # the frame has crossed the cable, what was begun is finished
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


def test_quanta_of_zero_resume_at_once() -> None:
    """XON ends a pause long before its quanta have run out."""
    with started(spec_of(PAIR, "switches.pfc={}")) as run:
        run.run_until(20_000)
        inject(run, "h2:right", pfc_frame(3, 0xFFFF))
        run.run_until(22_000)
        paused = sent(run, "right:h2", 3)
        inject(run, "h2:right", pfc_frame(3, 0))
        run.run_until(24_000)
        assert sent(run, "right:h2", 3) > paused


def test_a_pause_of_another_priority_stops_nothing() -> None:
    with started(spec_of(PAIR, "switches.pfc={}")) as run:
        run.run_until(20_000)
        inject(run, "h2:right", pfc_frame(5, 0xFFFF))
        outcome = finish(run)
    assert outcome.flows["flow"].completed
    assert outcome.ports["right:h2"]["rx_pause"][5] == 1


def test_a_switch_without_pfc_ignores_pause_frames() -> None:
    """The frame is counted, and nothing is paused."""
    with started(spec_of(PAIR)) as run:
        run.run_until(20_000)
        inject(run, "h2:right", pfc_frame(3, 0xFFFF))
        outcome = finish(run)
    assert outcome.ports["right:h2"]["rx_pause_duration"][3] == 0
    assert outcome.flows["flow"].completed


INCAST = (
    ONE_SWITCH
    + "traffic: [{name: incast, pattern: incast, from: h2-h5, to: h1, op: write, size: 400KB}]\n"
)


def test_headroom_as_computed_is_enough_and_a_frame_less_than_needed_is_not() -> None:
    """Lossless means lossless; a headroom that cannot hold what is on its way drops."""
    roomy = outcome_of(INCAST, "switches.pfc={}")
    assert roomy.total("tx_pause") > 0
    assert roomy.total("rx_buf_discard") == 0
    # On its way when XOFF is decided: three frames in 1 us of cable, there and back.
    tight = outcome_of(INCAST, "switches.pfc={headroom: 12KB}")
    assert tight.total("rx_buf_discard") > 0


def test_a_long_pause_is_told_again_before_it_runs_out() -> None:
    """A receiver that stays congested never lets its pause expire."""
    slow_receiver = "topology.links.0.rate=1Gbit"
    outcome = outcome_of(INCAST, "switches.pfc={xoff: 20KB, xon: 10KB}", slow_receiver)
    paused = outcome.ports["s1:h2"]
    assert paused["tx_pause"][3] > 2
    assert outcome.total("rx_buf_discard") == 0
