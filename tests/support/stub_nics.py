"""A stand-in for the NIC process: it answers, and sends nothing.

`python -m tests.support.stub_nics ERROR FD`. It fails with the error, unless the error is empty.
"""

from __future__ import annotations

import os
import sys

from emu.errors import FabricError
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.messages import Done, Progress, Ready, Start
from emu.lab.ipc.setup import NicsReady, SetUpNics
from emu.lab.nic_process import FLOW_COLUMNS
from emu.lab.worker import serve
from emu.measure.counters import XMIT_WAIT
from emu.measure.seqlock import SharedCounters


def job(channel: Channel) -> None:
    channel.send(Ready(os.getpid()))
    setup = channel.expect(SetUpNics)
    if error := sys.argv[1]:
        raise FabricError(error)
    hosts = SharedCounters.new(sorted(setup.hosts), [(XMIT_WAIT, 1)])
    flows = SharedCounters.new([], FLOW_COLUMNS)
    near, _line = channel_pair()
    files = [hosts.file, flows.file, near.fileno()]
    channel.send(NicsReady(hosts.layout, flows.layout), files)
    channel.expect(Start)
    channel.send(Progress(f"hosts: {' '.join(sorted(setup.hosts))}"))
    channel.send(Done())


if __name__ == "__main__":
    serve(job)
