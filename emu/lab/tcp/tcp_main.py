"""`python -m emu.lab.tcp.tcp_main FD`: the spec's TCP flows, both ends of each."""

from __future__ import annotations

import os
from dataclasses import asdict

from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Done, Ready, Setup, Start
from emu.lab.ipc.progress import progress_message
from emu.lab.job import slowdown_of, spec_of
from emu.lab.tcp.streams import EmulatedClock, Streams
from emu.lab.worker import serve


def job(channel: Channel) -> None:
    """From `Setup` to the answer to `Start`: every stream from beginning to end."""
    channel.send(Ready(os.getpid()))
    setup = channel.expect(Setup)
    slowdown = slowdown_of(setup.options)
    streams = Streams(spec_of(setup), setup.hosts)
    channel.send(Done())
    start = channel.expect(Start)
    clock = EmulatedClock(start.at_ns, slowdown)
    records = streams.run(clock, lambda moment: channel.send(progress_message(moment)))
    flows = [asdict(record) for record in records]
    channel.send(Done({"flows": flows, "notes": [streams.note(slowdown)]}))


if __name__ == "__main__":
    serve(job)
