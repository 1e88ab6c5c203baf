"""The two processes of a lab on the exact clock: how each runs its part, from set-up to end.

lab                                shim                      NICs
 set-up, shared memory ──────────▶ opens its sockets         opens its sockets
 Start ──────────────────────────▶ run to the end of the workload, window by window
                                   (emu/core/driver/exchange.h)
 ◀─────────────────── ExactDone ── writes its captures       writes its captures
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from emu.bindings.capture import CaptureFile, captured_ports
from emu.bindings.exact_driver import ExactDriver, Outcome
from emu.bindings.fabric import Fabric, NodeSubset
from emu.bindings.host_nics import HostNics
from emu.bindings.packet_socket import packet_socket
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.messages import Start
from emu.lab.ipc.setup import ExactDone, NicsReady, SetUpNics, SetUpShim, ShimReady
from emu.lab.namespace import PRIVATE
from emu.lab.netns import entered
from emu.lab.nic_process import FLOW_COLUMNS
from emu.lab.observation_file import send_observation
from emu.lab.processes import running
from emu.measure.counter_table import NIC
from emu.measure.observation import Observation
from emu.measure.seqlock import SharedCounters
from emu.spec.scenario import spec_from_json
from topologies.graph import Port

STEP_PS = 20_000_000
"""As on the virtual clock, a run ends with the step in which its workload ends."""
_SECONDS_BETWEEN_PROGRESS = 0.1
_SHIM_RING, _SHIM_RING_OF_A_HOST = 2048, 8
_NIC_RING, _NIC_RINGS = 128, 1 << 15
"""Frames in the ring of a NIC's socket, and of all of them."""
_NIC_RING_LEAST = 28


def emulate_switches(channel: Channel, setup: SetUpShim, files: list[int]) -> None:
    """Does all the work of the shim."""
    memory, *marker = files
    spec = spec_from_json(setup.spec)
    topology = spec.topology.build()
    ports = [p for p in captured_ports(spec, topology) if p.node in topology.switch]
    fabric = Fabric(spec, topology, NodeSubset.SWITCHES, subnet=setup.subnet, exact=True)
    with (
        fabric,
        ExactDriver(fabric, step_ps=STEP_PS, wake=channel.fileno()) as driver,
    ):
        capture = CaptureFile(fabric, PRIVATE / "capture", ports)
        fabric.connect()
        fabric.capture(ports)
        fabric.sample(flows_elsewhere=len(spec.workload().message_flows))
        _attach_switches(driver, fabric, plane=setup.plane)
        if marker:
            program, depths, curves = marker
            driver.share_marker(program, depths, curves, _marked_ports(setup))
        driver.join(memory)
        channel.send(ShimReady())
        channel.expect(Start)
        fabric.start()
        _run(driver, capture)
        _send_result(channel, fabric.observe(), driver, capture, setup.out)


def emulate_nics(channel: Channel, setup: SetUpNics) -> None:
    """Does all the work of the NICs."""
    (memory,) = channel.take_files()
    spec = spec_from_json(setup.spec)
    topology = spec.topology.build()
    ports = [p for p in captured_ports(spec, topology) if p.node in topology.host]
    with Fabric(spec, topology, NodeSubset.HOSTS, subnet=setup.subnet, exact=True) as fabric:
        endpoints = HostNics(fabric, spec.workload(), setup.subnet)
        with ExactDriver(fabric, step_ps=STEP_PS, wake=channel.fileno()) as driver:
            capture = CaptureFile(fabric, PRIVATE / "nic-capture", ports)
            fabric.capture(ports)
            fabric.sample(endpoints.flow_bytes, endpoints.flow_hosts)
            _attach_nics(driver, fabric, setup.hosts)
            driver.join(memory)
            _send_ready(channel, endpoints)
            channel.expect(Start)
            fabric.start()
            endpoints.start()
            driver.finish_with(endpoints.workload)
            _run(
                driver,
                capture,
                lambda: channel.send(running(endpoints.progress(fabric.now_ns))),
            )
            seen = endpoints.observe(fabric.observe())
            _send_result(channel, seen, driver, capture, setup.out)
        endpoints.close()


def _send_ready(channel: Channel, endpoints: HostNics) -> None:
    """The answer to a set-up has counters and a channel for queries, which a run does not use."""
    hosts = SharedCounters.new([], [*NIC.cells.items()])
    flows = SharedCounters.new([], FLOW_COLUMNS)
    queries, far = channel_pair()
    with closing(queries), far:
        channel.send(NicsReady(hosts.layout, flows.layout), [hosts.file, flows.file, far.fileno()])


def _run(
    driver: ExactDriver, capture: CaptureFile, report: Callable[[], None] = lambda: None
) -> None:
    while (outcome := driver.run(seconds=_SECONDS_BETWEEN_PROGRESS)) is Outcome.PAUSED:
        capture.drain()
        report()
    if outcome is Outcome.WOKEN:
        raise EOFError  # the lab ends


def _send_result(
    channel: Channel,
    seen: Observation,
    driver: ExactDriver,
    capture: CaptureFile,
    out: str,
) -> None:
    captures = capture.convert(Path(out))
    counts = driver.counts()
    done = ExactDone(
        {name: str(path) for name, path in captures.items()},
        windows=counts.windows,
        frames=counts.sent + counts.datapath,
        foreign=counts.foreign,
    )
    send_observation(channel, seen, done)


def _attach_switches(driver: ExactDriver, fabric: Fabric, *, plane: str) -> None:
    topology = fabric.topology
    hosts = len(topology.hosts)
    ring_frames = _SHIM_RING + _SHIM_RING_OF_A_HOST * hosts
    wire = driver.add_socket(packet_socket(), ring_frames=ring_frames)
    for host in topology.hosts:
        port = topology.ports[host.name][0]
        interface = socket.if_nametoindex(port.interface)
        driver.attach_end(
            wire, interface, port, host=host.name, room=_nic_ring(hosts) - _NIC_RING_LEAST // 2
        )
    if plane == "ovs":
        for switch in topology.switches:
            for port in topology.ports[switch.name]:
                driver.attach_datapath(wire, socket.if_nametoindex(port.interface), port)


def _attach_nics(driver: ExactDriver, fabric: Fabric, tasks: Mapping[str, int]) -> None:
    topology = fabric.topology
    hosts = len(topology.hosts)
    for host in topology.hosts:
        port = topology.ports[host.name][0]
        with entered(tasks[host.name]):
            opened = packet_socket(port.interface)
            wire = driver.add_socket(opened, ring_frames=_nic_ring(hosts))
            ifindex = socket.if_nametoindex(port.interface)
        room = max(_SHIM_RING_OF_A_HOST, _SHIM_RING // 2 // hosts)
        driver.attach_end(wire, ifindex, topology.peer[port], host=host.name, room=room)


def _nic_ring(hosts: int) -> int:
    return max(_NIC_RING_LEAST, min(_NIC_RING, _NIC_RINGS // hosts))


def _marked_ports(setup: SetUpShim) -> dict[Port, int]:
    """The ports that eBPF marks, with the numbers of their interfaces in this namespace."""
    from emu.lab.marker.marking import marked_ports

    spec = spec_from_json(setup.spec)
    ports: Sequence[Port] = marked_ports(spec, spec.topology.build())
    return {port: socket.if_nametoindex(port.interface) for port in ports}
