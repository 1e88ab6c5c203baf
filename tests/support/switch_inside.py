"""The first process of a lab that consists of one switch on the real clock.

`python -m tests.support.switch_inside FD`
"""

from __future__ import annotations

import os
import resource
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from emu.bindings.af_packet_driver import AfPacketDriver
from emu.bindings.fabric import Fabric, NodeSubset
from emu.bindings.packet_socket import packet_socket, request_stamps
from emu.lab.command import run
from emu.lab.init import main
from emu.lab.netns import entered, write_sysctl
from emu.lab.netns_holder import keep_host
from emu.lab.rt_sched import wake_in_time
from emu.lab.session import JobResult
from emu.lab.supervisor import Supervisor
from emu.measure.timeline import LOSSES
from emu.spec.scenario import spec_from_json
from tests.support.switch_job import Forward, Forwarded
from tests.support.waiting import eventually
from topologies.graph import Topology

_SECONDS = 10.0
"""More than any frame needs."""
_SOL_PACKET = 263
_VLAN_VALID = 1 << 4  # linux/if_packet.h
_AUXDATA = struct.Struct("=IIIHHHH")  # linux/if_packet.h: struct tpacket_auxdata


def forward(job: Forward, supervisor: Supervisor) -> JobResult:
    spec = spec_from_json(job.spec)
    topology = spec.topology.build()
    if job.stamps_late:
        run(["ip", "link", "set", "lo", "up"])
        _stay_on_one_processor()
        wake_in_time()
    source, sink = _cables(topology)
    wake, _ = os.pipe()
    with (
        Fabric(spec, topology, NodeSubset.SWITCHES) as fabric,
        AfPacketDriver(fabric, slowdown=1.0, wake=wake) as driver,
    ):
        fabric.connect()
        with _at_most(job.memory):
            wire = driver.add_socket(packet_socket(), ring_frames=job.ring_frames)
        for host in topology.hosts:
            port = topology.ports[host.name][0]
            cable_end = topology.peer[port]
            driver.attach_end(wire, socket.if_nametoindex(cable_end.interface), port)
        fabric.start()
        _stay_on_one_processor()
        start_ns = time.monotonic_ns()
        for number, frame in enumerate(job.frames):
            source.send(bytes.fromhex(frame))
            if job.stamps_late and number == 1:
                _await_stamps()
        arrived: list[str] = []
        while len(arrived) < job.arrivals:
            assert time.monotonic_ns() - start_ns < _SECONDS * 1e9, f"{len(arrived)} arrived"
            driver.run(start_ns, seconds=0.01)
            arrived += _waiting(sink)
        timing = driver.timing()
        entrance = topology.peer[topology.ports["h1"][0]]
        (slots,) = np.nonzero(timing.timeline.lost[:, LOSSES.index("arriving")])
        forwarded = Forwarded(
            arrived=tuple(arrived),
            drops=timing.receive_drops,
            drops_over_time=int(timing.timeline.lost.sum()),
            dropped=sum(fabric.counters(entrance)["rx_buf_discard"]),
            too_long=fabric.counters(entrance)["rx_oversize"][0],
            dropped_over_time=int(timing.timeline.dropped.sum()),
            seen_after_ns=tuple(int(slot + 1) * timing.timeline.interval_ns for slot in slots),
            lasted_ns=time.monotonic_ns() - start_ns,
        )
        return forwarded, []


def _await_stamps() -> None:
    """Waits until the kernel stamps packets that arrive, seen at the loopback interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request_stamps(probe)
        probe.bind(("127.0.0.1", 0))

        def is_stamped() -> bool:
            probe.sendto(b"?", probe.getsockname())
            _, controls, _, _ = probe.recvmsg(1, 256)
            return bool(controls)

        eventually(is_stamped)


def _cables(topology: Topology) -> tuple[socket.socket, socket.socket]:
    """Adds veths to one namespace for all hosts; returns the sockets of h1 and h2 there."""
    hosts = keep_host()
    for namespace in (os.getpid(), hosts):
        with entered(namespace):
            write_sysctl("net.ipv6.conf.default.disable_ipv6", "1")
    ports = [topology.ports[host.name][0] for host in topology.hosts]
    for port in ports:
        end = topology.peer[port].interface
        run(["ip", "link", "add", end, "mtu", "9000", "type", "veth", "peer", port.interface])
        run(["ip", "link", "set", port.interface, "mtu", "9000", "netns", str(hosts)])
        run(["ip", "link", "set", end, "up"])
    with entered(hosts):
        for port in ports:
            run(["ip", "link", "set", port.interface, "up"])
        source, sink = (packet_socket(port.interface) for port in ports)
    return source, sink


def _stay_on_one_processor() -> None:
    """Pins the process to one processor: the kernel keeps frames in order only per processor.

    Each processor has a queue of frames from veths, so a sender that migrates can overtake its own
    frames in the queue of the processor before.
    """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


@contextmanager
def _at_most(memory: int | None) -> Iterator[None]:
    """Limits the growth of the process' address space for a while."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    if memory is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def _waiting(sink: socket.socket) -> Iterator[str]:
    """Frames in a socket's receive queue, as hex."""
    while True:
        try:
            frame, controls, _, _ = sink.recvmsg(9000, 256, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        yield (frame[:12] + _vlan_tag(controls) + frame[12:]).hex()


def _vlan_tag(controls: list[tuple[int, int, bytes]]) -> bytes:
    """The VLAN tag that the kernel removed from a frame; empty if it had none."""
    (auxiliary,) = (data for level, _, data in controls if level == _SOL_PACKET)
    status, _, _, _, _, tci, tpid = _AUXDATA.unpack(auxiliary)
    return struct.pack("!HH", tpid, tci) if status & _VLAN_VALID else b""


if __name__ == "__main__":
    main({Forward: forward})
