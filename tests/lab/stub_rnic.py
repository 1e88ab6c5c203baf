"""A stand-in for the NIC process: it answers, and has nothing to send.

`python -m tests.lab.stub_rnic FD`
"""

from __future__ import annotations

import os

from emu.errors import FabricError
from emu.lab.channel import Channel, channel_pair
from emu.lab.child import serve
from emu.lab.messages import Done, Progress, Ready, Setup, Start
from emu.measure.board import Board
from emu.measure.counters import XMIT_WAIT


def job(channel: Channel) -> None:
    channel.send(Ready(os.getpid()))
    setup = channel.expect(Setup)
    if "rnic_fails" in setup.options:
        raise FabricError(setup.options["rnic_fails"])
    board = Board.new(sorted(setup.hosts), [(XMIT_WAIT, 1)])
    near, _line = channel_pair()
    channel.send(Done({"board": board.legend}), [board.file, near.fileno()])
    channel.expect(Start)
    channel.send(Progress(f"hosts: {' '.join(sorted(setup.hosts))}"))
    channel.send(Done())


if __name__ == "__main__":
    serve(job)
