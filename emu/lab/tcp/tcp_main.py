"""`python -m emu.lab.tcp.tcp_main FD`: the spec's TCP flows, both ends of each."""

from __future__ import annotations

import os

from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Done, Ready, Start
from emu.lab.ipc.setup import SetUpTcp, StreamsDone
from emu.lab.processes import running
from emu.lab.tcp.streams import EmulatedClock, Streams
from emu.lab.worker import serve
from emu.spec.scenario import spec_from_json


def job(channel: Channel) -> None:
    """Sets up the TCP flows and carries them out."""
    channel.send(Ready(os.getpid()))
    setup = channel.expect(SetUpTcp)
    streams = Streams(spec_from_json(setup.spec), setup.hosts)
    channel.send(Done())
    start = channel.expect(Start)
    clock = EmulatedClock(start.at_ns, setup.slowdown)
    records = streams.run(clock, lambda moment: channel.send(running(moment)))
    channel.send(StreamsDone(tuple(records), (streams.note(setup.slowdown),)))


if __name__ == "__main__":
    serve(job)
