"""Brings up a background lab."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from emu.errors import FabricError
from emu.lab import last_words
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.jobs import ServeLab
from emu.lab.ipc.messages import Progress, Up
from emu.spec.scenario import Spec


def bring_up(
    spec: Spec,
    slowdown: float,
    on_progress: Callable[[str], None],
    on_up: Callable[[], None] = lambda: None,
) -> None:
    """Brings up a lab on the real clock, as `bring_up_job` does."""
    bring_up_job(ServeLab(spec.to_json(), slowdown), on_progress, on_up)


def bring_up_exact(
    spec: Spec,
    on_progress: Callable[[str], None],
    on_up: Callable[[], None] = lambda: None,
) -> None:
    """Brings up a lab on the exact clock, as `bring_up_job` does."""
    bring_up_job(ServeLab(spec.to_json(), 1, ip=False, exact=True), on_progress, on_up)


def bring_up_job(
    job: ServeLab, on_progress: Callable[[str], None], on_up: Callable[[], None]
) -> None:
    """Brings up a lab under the spec's name. Returns when it answers; the lab outlives the caller.

    `on_up` reports the lab to the user; interrupts from then on are ignored. Raises UsageError if
    the name is in use, HostError, FabricError and KeyboardInterrupt; the lab has ended then, or is
    about to.
    """
    channel, far = channel_pair()
    try:
        with far:
            _start_owner(far.fileno())
        channel.send(job)
        _follow(channel, on_progress)
        with _no_interrupts():
            channel.send(Up())  # the lab stays when this process ends
            on_up()
    except EOFError:
        raise FabricError("the owner of the lab died while it was built") from None
    finally:
        channel.close()


def _follow(channel: Channel, on_progress: Callable[[str], None]) -> None:
    """Reports progress until the lab is up."""
    while not isinstance(message := channel.receive(), Up):
        if isinstance(message, Progress):
            on_progress(message.text)


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ignores SIGINT and SIGTERM in its body. They interrupt only the main thread."""
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
    """Starts the owner in a session of its own, so that it does not depend on the terminal."""
    with last_words.memory() as stderr:
        subprocess.Popen(
            [sys.executable, "-m", "emu.daemon.daemon_main", str(far)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=[far],
            start_new_session=True,
        )
