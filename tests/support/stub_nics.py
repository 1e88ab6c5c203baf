"""A stand-in for the NIC process: it answers, and has nothing to send.

`python -m tests.support.stub_nics FD`
"""

from __future__ import annotations

import os

from emu.errors import FabricError
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.messages import Done, Progress, Ready, Setup, Start
from emu.lab.nic_process import FLOW_COLUMNS
from emu.lab.worker import serve
from emu.measure.counters import XMIT_WAIT
from emu.measure.seqlock import Board


def job(channel: Channel) -> None:
    channel.send(Ready(os.getpid()))
    setup = channel.expect(Setup)
    if "rnic_fails" in setup.options:
        raise FabricError(setup.options["rnic_fails"])
    board = Board.new(sorted(setup.hosts), [(XMIT_WAIT, 1)])
    flows = Board.new([], FLOW_COLUMNS)
    near, _line = channel_pair()
    legends = {"board": board.legend, "flows": flows.legend}
    channel.send(Done(legends), [board.file, flows.file, near.fileno()])
    channel.expect(Start)
    channel.send(Progress(f"hosts: {' '.join(sorted(setup.hosts))}"))
    channel.send(Done())


if __name__ == "__main__":
    serve(job)
