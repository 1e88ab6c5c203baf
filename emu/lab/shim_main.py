"""`python -m emu.lab.shim_main FD`: the process of the shim.

It has a network namespace of its own, so that one socket receives the frames of all cables and no
others. The lab needs that namespace to add the cables, so the process loads its large modules
afterwards.
"""

from __future__ import annotations

import os

from emu.lab import netns
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Ready
from emu.lab.worker import serve


def job(channel: Channel) -> None:
    netns.unshare()
    channel.send(Ready(os.getpid()))
    from emu.lab.shim import emulate

    emulate(channel)


if __name__ == "__main__":
    serve(job)
