"""Controls a lab's processes through a workload: set up, start, done.

    lab ── set-up ─▶ NICs, TCP ── ready ─▶ lab ── Start ─▶ ... ── Progress, Done ─▶ lab

If there are TCP flows, the NICs run until these are over: on InfiniBand the NICs carry TCP's
packets.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from emu.errors import FabricError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.lab.ipc.messages import Done, Progress, Ready, Stop
from emu.lab.ipc.setup import SetUpTcp, StreamsDone
from emu.measure.run_progress import RunProgress, summed

M = TypeVar("M")
OnProgress = Callable[[Progress], None]


def running(moment: RunProgress) -> Progress:
    """The progress of a workload, as a message."""
    return Progress("running", moment)


def set_up_tcp(process: Channel, setup: SetUpTcp) -> int:
    """Sets up the TCP process. Returns its pid when it is ready to start."""
    pid = process.expect(Ready).pid
    process.send(setup)
    wait_for(process, Done)
    return pid


def wait_for(
    channel: Channel,
    kind: type[M],
    on_progress: OnProgress | None = None,
    within: float | None = None,
) -> M:
    """A process's next message of this kind. Progress messages before it go to `on_progress`.

    Raises TimeoutError when the process sends nothing for `within` seconds.
    """
    while True:
        message: Message = channel.receive(within)
        if isinstance(message, kind):
            return message
        if not isinstance(message, Progress):
            raise _unexpected(message, kind)
        if on_progress is not None:
            on_progress(message)


def wait_for_all(channels: Sequence[Channel], kind: type[M], on_progress: OnProgress) -> list[M]:
    """The next message of this kind of each process. As soon as one of them fails, its error is
    raised, whatever the others do."""
    answers: dict[Channel, M] = {}
    while len(answers) < len(channels):
        waiting = [channel for channel in channels if channel not in answers]
        readable, _, _ = select.select(waiting, [], [])
        for channel in readable:
            while channel not in answers and channel.has_more():  # it may have received several
                message = channel.receive()
                if isinstance(message, kind):
                    answers[channel] = message
                elif isinstance(message, Progress):
                    on_progress(message)
                else:
                    raise _unexpected(message, kind)
    return [answers[channel] for channel in channels]


def _unexpected(message: Message, kind: type[Message]) -> FabricError:
    return FabricError(f"a process of the lab sent {message} instead of {kind.__name__}")


def carry_out(rnic: Channel, tcp: Channel | None, on_progress: OnProgress) -> StreamsDone:
    """Waits until the spec's traffic is over. Returns the records of its TCP flows."""
    if tcp is None:
        wait_for(rnic, Done, on_progress)
        return StreamsDone()
    parts = _Parts(on_progress)
    with ThreadPoolExecutor(1) as pool:
        streams = pool.submit(_release_nics_after, tcp, rnic, parts.of("tcp"))
        wait_for(rnic, Done, parts.of("rdma"))
        return streams.result()


def _release_nics_after(tcp: Channel, rnic: Channel, on_progress: OnProgress) -> StreamsDone:
    """Also when the streams have failed, but not if their process was ended: then the NICs are."""
    try:
        streams = wait_for(tcp, StreamsDone, on_progress)
    except EOFError:
        raise
    except Exception:
        rnic.send(Stop())
        raise
    rnic.send(Stop())
    return streams


class _Parts:
    """Sums up the progress of several processes."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._moments: dict[str, RunProgress] = {}

    def of(self, part: str) -> OnProgress:
        def report(message: Progress) -> None:
            if message.moment is not None:
                self._moments[part] = message.moment
                self._on_progress(running(summed([*self._moments.values()])))

        return report
