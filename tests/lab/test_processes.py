"""Waiting for messages of a lab's processes."""

from __future__ import annotations

import pytest

from emu.errors import FabricError
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.messages import Done, Progress, Ready
from emu.lab.processes import wait_for_all


def _pair() -> tuple[Channel, Channel]:
    near, far = channel_pair()
    return near, Channel(far)


@pytest.mark.timeout(10)
def test_messages_that_arrive_together_are_all_handled() -> None:
    """One read returns both, and the socket is empty then."""
    (one, far_of_one), (other, far_of_other) = _pair(), _pair()
    far_of_one.send(Progress("running"))
    far_of_one.send(Done())
    far_of_other.send(Done())
    seen: list[Progress] = []
    assert wait_for_all([one, other], Done, seen.append) == [Done(), Done()]
    assert seen == [Progress("running")]


def test_another_message_is_an_error() -> None:
    near, far = _pair()
    far.send(Ready(1))
    with pytest.raises(FabricError, match="sent Ready"):
        wait_for_all([near], Done, lambda _: None)
