"""Waiting for messages of a lab's processes."""

from __future__ import annotations

import pytest

from emu.errors import FabricError
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.messages import Done, Failure, Progress, Ready, Stop
from emu.lab.ipc.setup import StreamsDone
from emu.lab.processes import carry_out, wait_for_all


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


@pytest.mark.timeout(10)
def test_nics_stop_when_the_streams_are_over() -> None:
    (nics, far_of_nics), (tcp, far_of_tcp) = _pair(), _pair()
    far_of_tcp.send(StreamsDone())
    far_of_nics.send(Done())
    assert carry_out(nics, tcp, lambda _: None) == StreamsDone()
    assert far_of_nics.expect(Stop)


@pytest.mark.timeout(10)
def test_nics_stop_when_the_streams_fail() -> None:
    (nics, far_of_nics), (tcp, far_of_tcp) = _pair(), _pair()
    far_of_tcp.send(Failure.of(FabricError("no memory")))
    far_of_nics.send(Done())
    with pytest.raises(FabricError, match="no memory"):
        carry_out(nics, tcp, lambda _: None)
    assert far_of_nics.expect(Stop)


@pytest.mark.timeout(10)
def test_nics_of_streams_that_were_ended_are_not_told_to_stop() -> None:
    """They would end before whoever has ended the streams ends them, as if they had died."""
    (nics, far_of_nics), (tcp, far_of_tcp) = _pair(), _pair()
    far_of_tcp.close()
    far_of_nics.send(Done())
    with pytest.raises(EOFError):
        carry_out(nics, tcp, lambda _: None)
    assert not far_of_nics.has_more()
