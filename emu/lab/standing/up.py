"""Brings a lab up in the background."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from emu.errors import FabricError
from emu.lab.channel import channel_pair
from emu.lab.messages import Progress, Request, Up
from emu.lab.standing import place
from emu.spec.scenario import Spec


def bring_up(spec: Spec, slowdown: float, say: Callable[[str], None]) -> None:
    """A lab of the spec's name. Returns when it answers; it goes on when the calling process ends.

    Raises UsageError when the name is taken, HostError, FabricError, KeyboardInterrupt;
    there is no lab then.
    """
    options = {"slowdown": slowdown, "standing": True}
    request = Request("stand", spec.to_json(), "/", options)
    channel, far = channel_pair()
    with place.claim(spec.name) as listener:
        with far:
            _start_owner(far.fileno())
        channel.send(request, [listener.fileno()])
    try:
        while not isinstance(message := channel.receive(), Up):
            if isinstance(message, Progress):
                say(message.text)
    except EOFError:
        raise FabricError("the owner of the lab died while it was built") from None
    finally:
        channel.close()


def _start_owner(far: int) -> None:
    """In a session of its own: it neither has the terminal nor goes with it."""
    subprocess.Popen(
        [sys.executable, "-m", "emu.lab.standing.owner", str(far)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[far],
        start_new_session=True,
    )
