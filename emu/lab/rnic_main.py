"""`python -m emu.lab.rnic_main FD`: the NICs of all hosts in a lab, and the workload on them.

Each NIC has a socket on its host's own interface, in the host's namespace. What
it sends can be captured there, and whatever else the host sends goes the same way.
"""

from __future__ import annotations

import os
import socket
from dataclasses import replace

from emu.lab.channel import Channel
from emu.lab.child import serve
from emu.lab.job import send_observation, slowdown_of, spec_of, subnet_of
from emu.lab.messages import Done, Ready, Setup, Start
from emu.lab.netns import entered
from emu.lab.pace import be_punctual
from emu.lab.telling import progress_message
from emu.measure.board import Board
from emu.shim.fabric import Fabric, Members
from emu.shim.live import Live, Outcome, packet_socket
from traffic.rnic.endpoints import COUNTERS, Endpoints

_SECONDS_BETWEEN_PROGRESS = 0.1


def job(channel: Channel) -> None:
    """From `Setup` to the answer to `Start`: the workload from beginning to end."""
    channel.send(Ready(os.getpid()))
    setup = channel.expect(Setup)
    spec = spec_of(setup)
    topology, workload, subnet = spec.topology.build(), spec.workload(), subnet_of(setup)
    with Fabric(spec, topology, Members.HOSTS, subnet=subnet) as fabric:
        endpoints = Endpoints(fabric, workload, subnet)
        with Live(fabric, slowdown=slowdown_of(setup.options), wake=channel.fileno()) as live:
            fabric.sample(endpoints.flow_bytes, len(endpoints.flows))
            _attach(live, fabric, setup)
            live.finish_on(endpoints.finished_flag)
            fabric.prefault()
            be_punctual()
            board = Board.new(list(topology.host), COUNTERS)
            channel.send(Done({"board": board.legend}), [board.file])
            _run(channel, live, fabric, endpoints, board)
            seen = replace(fabric.observe(), ledger=live.ledger())
            send_observation(channel, endpoints.observe(seen), {})
        endpoints.close()


def _attach(live: Live, fabric: Fabric, setup: Setup) -> None:
    topology = fabric.topology
    for host in topology.hosts:
        port = topology.ports[host.name][0]
        with entered(setup.hosts[host.name]):
            wire = live.add_socket(packet_socket(port.interface))
            ifindex = socket.if_nametoindex(port.interface)
        live.attach_end(wire, ifindex, topology.peer[port])


def _run(channel: Channel, live: Live, fabric: Fabric, endpoints: Endpoints, board: Board) -> None:
    """Emulates until the workload is over, or the spec's time limit."""
    start = channel.expect(Start)
    fabric.start()
    endpoints.start()
    while live.run(start.at_ns, seconds=_SECONDS_BETWEEN_PROGRESS) is Outcome.PAUSED:
        if fabric.now_ns * 1000 >= fabric.spec.time_limit_ps:
            return
        endpoints.post_counters(board.begin(fabric.now_ns * 1000))
        board.publish()
        channel.send(progress_message(endpoints.progress(fabric.now_ns)))
    endpoints.post_counters(board.begin(fabric.now_ns * 1000))
    board.publish()


if __name__ == "__main__":
    serve(job)
