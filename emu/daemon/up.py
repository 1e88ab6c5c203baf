"""Brings a lab up in the background."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from emu.errors import FabricError
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.jobs import ServeLab
from emu.lab.ipc.messages import Progress, Up
from emu.spec.scenario import Spec


def bring_up(
    spec: Spec,
    slowdown: float,
    say: Callable[[str], None],
    on_up: Callable[[], None] = lambda: None,
) -> None:
    """A lab of the spec's name. Returns when it answers; it goes on when the calling process ends.

    `on_up` tells of the lab: an interrupt that comes from then on comes too late, and is ignored.
    Raises UsageError when the name is taken, HostError, FabricError, KeyboardInterrupt;
    there is no lab then, or it ends at this moment.
    """
    channel, far = channel_pair()
    try:
        with far:
            _start_owner(far.fileno())
        channel.send(ServeLab(spec.to_json(), slowdown))
        _follow(channel, say)
        with _no_interrupts():
            channel.send(Up())  # the lab is to stay
            on_up()
    except EOFError:
        raise FabricError("the owner of the lab died while it was built") from None
    finally:
        channel.close()


def _follow(channel: Channel, say: Callable[[str], None]) -> None:
    """Until the lab is up."""
    while not isinstance(message := channel.receive(), Up):
        if isinstance(message, Progress):
            say(message.text)


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """SIGINT and SIGTERM are ignored. Only the main thread is ever interrupted by them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _start_owner(far: int) -> None:
    """In a session of its own: it neither has the terminal nor goes with it."""
    subprocess.Popen(
        [sys.executable, "-m", "emu.daemon.daemon_main", str(far)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[far],
        start_new_session=True,
    )
