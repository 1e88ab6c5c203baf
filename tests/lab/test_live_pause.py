"""A pause frame that scapy sends from a host's namespace, against a real switch port.

Times are emulated times from the capture, so the machine's load does not matter.
"""

from __future__ import annotations

import pytest

from emu.wire.capture import Direction
from emu.wire.layers import pfc
from emu.wire.reader import open_capture
from tests.support.driven_lab import Driven, run_driven

QUANTA = 10_000
PAUSE_NS = 51_200
"""Duration of `QUANTA` quanta of 512 bits at 100 Gb/s, half a second of real time."""
SLOWDOWN = 10_000
SPEC = """
name: pause
topology: {kind: graph, switches: [s1], hosts: [h1, h2, h3, h4], links: [
  {between: [s1, h1], rate: 100Gbit, delay: 500ns},
  {between: [s1, h2], rate: 100Gbit, delay: 500ns},
  {between: [s1, h3], rate: 100Gbit, delay: 500ns},
  {between: [s1, h4], rate: 100Gbit, delay: 500ns}]}
switches: {pfc: {}}
traffic:
  - {name: stopped, pattern: pair, from: h1, to: h2, op: write, size: 2MB}
  - {name: free, pattern: pair, from: h3, to: h4, op: write, size: 2MB}
capture: [s1:h2, s1:h4]
"""


@pytest.fixture(scope="module")
def run(lab_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Driven:
    """A run in which h2 sends the switch one pause frame."""
    frame = bytes(pfc({3: QUANTA}))
    folder = tmp_path_factory.mktemp("pause")
    return run_driven(SPEC, folder, slowdown=SLOWDOWN, frames=[("h2", frame)])


def _paused_from(run: Driven) -> int:
    """When the pause frame has arrived, in ns."""
    (at,) = [at for at, data in _frames(run, "s1:h2", Direction.IN) if data[12:14] == b"\x88\x08"]
    return at


def _left(run: Driven, port: str) -> list[int]:
    """When the first bit of each frame left a port, in ns."""
    return [at for at, _ in _frames(run, port, Direction.OUT)]


def _frames(run: Driven, port: str, direction: Direction) -> list[tuple[int, bytes]]:
    with open_capture(run.captures[port]) as capture:
        return [(r.time_ns, r.data) for r in capture if r.direction is direction]


def test_a_paused_port_sends_nothing_for_the_quanta(run: Driven) -> None:
    """The next frame leaves at the end of the pause, to the nanosecond."""
    begins = _paused_from(run)
    after = min(at for at in _left(run, "s1:h2") if at > begins)
    assert after - begins == pytest.approx(PAUSE_NS, abs=1)


def test_other_ports_are_not_paused(run: Driven) -> None:
    """Frames to another host leave during the pause."""
    begins = _paused_from(run)
    assert [at for at in _left(run, "s1:h4") if begins < at < begins + PAUSE_NS]


def test_counters_show_one_pause_of_that_length(run: Driven) -> None:
    """No other port and no other priority counts a pause."""
    paused = {
        (name, priority): (own["rx_pause"][priority], own["rx_pause_duration"][priority] // 1000)
        for name, own in run.ports.items()
        for priority in range(8)
        if own["rx_pause"][priority] or own["rx_pause_duration"][priority]
    }
    assert paused == {("s1:h2", 3): (1, PAUSE_NS)}


def test_the_paused_flow_completes(run: Driven) -> None:
    """No packet is lost."""
    assert all(flow.completed for flow in run.flows.values())
    assert sum(sum(own["rx_buf_discard"]) for own in run.ports.values()) == 0
