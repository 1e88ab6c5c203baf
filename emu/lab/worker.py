"""The start and the end of a lab's process other than the first.

    def main() -> None:
        serve(job)                      # job(channel) does the work

The last argument of the process is the descriptor of its channel. The process ends with the lab:
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


def serve(job: Callable[[Channel], None]) -> None:
    """Runs the job with the channel to the lab; an exception becomes a `Failure` message."""
    channel = Channel.inherited(int(sys.argv[-1]))
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
