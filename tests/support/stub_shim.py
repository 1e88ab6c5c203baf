"""A stand-in for the shim: it answers like the shim, and every cable is a kernel bridge.

`python -m tests.support.stub_shim FD`
"""

from __future__ import annotations

import os

from emu.lab import netns
from emu.lab.command import run
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Ready, Start, Stop
from emu.lab.ipc.setup import SetUpShim, ShimReady, ShimStopped
from emu.lab.worker import serve
from emu.spec.scenario import spec_from_json
from topologies.graph import Cable


def job(channel: Channel) -> None:
    netns.unshare()
    channel.send(Ready(os.getpid()))
    setup = channel.expect(SetUpShim)
    if setup.plane == "ovs":
        topology = spec_from_json(setup.spec).topology.build()
        for number, cable in enumerate(topology.cables):
            run(["ip", "-batch", "-"], stdin=_bridge(f"cable{number}", cable))
    shared = len(channel.take_files())
    channel.send(ShimReady())
    channel.expect(Start)
    channel.expect(Stop)
    received = {"subnet": str(setup.subnet is not None), "shared": str(shared)}
    channel.send(ShimStopped(captures=received))


def _bridge(name: str, cable: Cable) -> str:
    """Lines for `ip` that join a cable's two ends. With `ageing_time 0` the bridge learns no
    addresses."""
    return (
        f"link add name {name} mtu 4200 type bridge ageing_time 0\n"
        f"link set {cable.a.interface} master {name}\n"
        f"link set {cable.b.interface} master {name}\n"
        f"link set {name} up\n"
    )


if __name__ == "__main__":
    serve(job)
