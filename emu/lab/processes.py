"""Talks a lab's processes through a workload: set up, start, done.

    lab ── Setup ─▶ NICs, TCP ── Done ─▶ lab ── Start ─▶ ... ── Progress, Done ─▶ lab

Where there is TCP, the NICs wait for it: on InfiniBand its packets go through them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from emu.errors import FabricError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Done, Json, Message, Progress, Ready, Setup, Stop
from emu.lab.ipc.progress import progress_message, told_progress
from emu.measure.progress import Progress as Moment
from emu.measure.progress import summed

OnProgress = Callable[[Progress], None]


def set_up(process: Channel, setup: Setup) -> int:
    """Tells a process what it needs; its pid when it is ready to start."""
    pid = process.expect(Ready).pid
    process.send(setup)
    wait_done(process)
    return pid


def wait_done(
    channel: Channel, on_progress: OnProgress | None = None, within: float | None = None
) -> Json:
    """The value of a process's next `Done`.

    Raises TimeoutError when it says nothing for so many seconds.
    """
    while True:
        message: Message = channel.receive(within)
        if isinstance(message, Done):
            return message.value
        if not isinstance(message, Progress):
            raise FabricError(f"a process of the lab said {message} where it should be done")
        if on_progress is not None:
            on_progress(message)


def carry_out(rnic: Channel, tcp: Channel | None, on_progress: OnProgress) -> Json:
    """Waits until the spec's traffic is over; what became of its TCP flows."""
    if tcp is None:
        wait_done(rnic, on_progress)
        return {"flows": [], "notes": []}
    parts = _Parts(on_progress)
    with ThreadPoolExecutor(1) as pool:
        streams = pool.submit(_let_go_after, tcp, rnic, parts.of("tcp"))
        wait_done(rnic, parts.of("rdma"))
        return streams.result()


def _let_go_after(tcp: Channel, rnic: Channel, on_progress: OnProgress) -> Json:
    try:
        return wait_done(tcp, on_progress)
    finally:
        rnic.send(Stop())


class _Parts:
    """The progress of several processes, told as that of one."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._moments: dict[str, Moment] = {}

    def of(self, part: str) -> OnProgress:
        def tell(message: Progress) -> None:
            moment = told_progress(message)
            if moment is not None:
                self._moments[part] = moment
                self._on_progress(progress_message(summed([*self._moments.values()])))

        return tell
