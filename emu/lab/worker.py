"""The start and the end of a lab's process other than the first.

    def main() -> None:
        serve(job)                      # job(channel) does the work

The fork server runs the job (emu.lab.fork_server), or a command does, whose last argument is the
descriptor of its channel. The process ends with the lab:
when its job is done or has failed, it reports that and waits until the lab closes the channel.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

from emu.errors import EmuError, ExitCode
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Failure
from emu.resources import exhausted_resource


def serve(job: Callable[[Channel], None], descriptor: int | None = None) -> None:
    """Runs the job with the channel to the lab; an exception becomes a `Failure` message.

    `descriptor`: of the channel; None: the last argument of the process.
    """
    channel = Channel.inherited(int(sys.argv[-1]) if descriptor is None else descriptor)
    try:
        _do(job, channel)
        channel.receive()  # raises EOFError when the lab closes the channel
    except EOFError:
        os._exit(ExitCode.OK)


def _do(job: Callable[[Channel], None], channel: Channel) -> None:
    try:
        job(channel)
    except EOFError:
        raise
    except Exception as error:
        if not isinstance(error, EmuError) and not exhausted_resource(error):
            traceback.print_exc()
        channel.send(Failure.of(error))
