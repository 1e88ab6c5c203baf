"""`emu.plans.pauses`: the frames of testers."""

from __future__ import annotations

import pytest
from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether

from emu.plans.pauses import (
    TimedFrame,
    every_class_enabled,
    invalid_opcode,
    pfc_frame,
    refreshed,
    truncated,
)
from tests.support import pause_frames


@pytest.mark.parametrize("quanta", [0, 1, 65535])
def test_frame_equals_that_of_scapy(quanta: int) -> None:
    """All bytes but the sender's address, which is a matter of choice."""
    own, other = pfc_frame([3], quanta), pause_frames.pfc_frame(3, quanta)
    assert own[:6] + own[12:] == (other[:6] + other[12:]).ljust(54, b"\0")
    assert len(own) == 60


def test_malformed_frames_are_malformed() -> None:
    """Each differs from a whole PFC frame in what its name says."""
    assert MACControlClassBasedFlowControl not in Ether(invalid_opcode())
    assert invalid_opcode()[14:16] == b"\x0f\x0f"
    assert len(truncated()) < 14 + 2 + 18
    assert Ether(every_class_enabled())[MACControlClassBasedFlowControl].c7_enabled == 1
    assert every_class_enabled()[16:18] == b"\xff\xff"


def test_pause_is_refreshed_before_it_ends() -> None:
    """At 100 Gb/s a pause lasts 335.5 us, and is sent again after half of that."""
    frames = [*refreshed("h2:leaf1", [3, 4], 100_000_000_000, 0, 400_000)]
    assert [frame.at_ns for frame in frames] == [0, 167_769, 335_538, 400_000]
    assert frames[0] == TimedFrame(0, "h2:leaf1", pfc_frame([3, 4]))
    assert frames[-1].content == pfc_frame([3, 4], 0)
