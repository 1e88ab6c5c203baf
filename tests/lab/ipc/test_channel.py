"""Messages between the processes of a lab."""

from __future__ import annotations

import itertools
import os
import tempfile
from contextlib import ExitStack

import pytest

from emu.errors import EmuError, FabricError, HostError, RemoteProtocolError
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.codec import Message
from emu.lab.ipc.messages import Done, Failure, Progress, Ready, Start
from emu.measure.run_progress import RunProgress


def _pair() -> tuple[Channel, Channel]:
    near, far = channel_pair()
    return near, Channel(far)


def test_messages_arrive_whole_and_in_order() -> None:
    """Several messages wait in the channel, one of them with a line break."""
    near, far = _pair()
    sent: list[Message] = [
        Progress("line\nbreak"),
        Start(7),
        Progress("running", RunProgress(1, 2, 3, 4, 5)),
    ]
    for message in sent:
        near.send(message)
    assert [far.receive() for _ in sent] == sent


def test_an_open_file_arrives_with_its_message() -> None:
    """The receiver's descriptor reads what the sender wrote."""
    near, far = _pair()
    with tempfile.TemporaryFile() as file:
        file.write(b"depths")
        file.flush()
        near.send(Done(), [file.fileno()])
    far.expect(Done)
    (descriptor,) = far.take_files()
    assert os.pread(descriptor, 6, 0) == b"depths"
    os.close(descriptor)


@pytest.mark.parametrize("count", [9, 253, 254, 600])
def test_many_open_files_arrive_in_order(count: int) -> None:
    """A lab sends one for each host."""
    near, far = _pair()
    with ExitStack() as stack:
        pipes = [os.pipe() for _ in range(count)]
        for end in itertools.chain(*pipes):
            stack.callback(os.close, end)
        near.send(Done(), [reader for reader, _ in pipes])
        far.expect(Done)
        received = far.take_files()
        for end in received:
            stack.callback(os.close, end)
        assert len(received) == count
        for (_, writer), reader in zip(pipes, received, strict=True):
            os.write(writer, b"x")
            assert os.read(reader, 1) == b"x"


@pytest.mark.parametrize(
    "error", [FabricError("no bridge"), HostError("no opensm", remedy="install it")]
)
def test_a_received_failure_is_raised(error: EmuError) -> None:
    """The exception has the type and text of the sender's error."""
    near, far = _pair()
    near.send(Failure.of(error))
    with pytest.raises(type(error)) as raised:
        far.receive()
    assert str(raised.value) == str(error)


def test_a_closed_channel_raises_eof() -> None:
    """Sending and receiving both raise EOFError."""
    near, far = _pair()
    near.close()
    with pytest.raises(EOFError):
        far.receive()
    with pytest.raises(EOFError):
        far.send(Done())


def test_a_message_of_the_wrong_kind_is_an_error() -> None:
    near, far = _pair()
    near.send(Done())
    with pytest.raises(RemoteProtocolError, match="expected Ready"):
        far.expect(Ready)
