"""The two processes of a lab on the exact clock: how each runs its part, from set-up to end.

lab                                shim                      NICs
 set-up, shared memory ──────────▶ opens its sockets         opens its sockets
 Start ──────────────────────────▶ run to the end of the workload, window by window
                                   (emu/core/driver/exchange.h)
 ◀─────────────────── ExactDone ── writes its captures       writes its captures

In an interactive lab the shim goes on (emu/daemon/exact_shim.py), and is joined by the NICs of one
workload after the other.
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
from emu.lab.fault_changes import change_faults
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.messages import Done, Start
from emu.lab.ipc.poller import Poller
from emu.lab.ipc.setup import ExactDone, SetUpNics, SetUpShim, ShimReady
from emu.lab.namespace import PRIVATE
from emu.lab.netns import entered
from emu.lab.nic_process import spec_of_nics
from emu.lab.nic_tables import NicTables
from emu.lab.observation_file import send_observation
from emu.lab.processes import running
from emu.lab.routing_link import RouteChanges
from emu.measure.observation import Observation
from emu.spec.fault import Fault
from emu.spec.scenario import spec_from_json
from topologies.graph import Port, Topology

STEP_PS = 20_000_000
"""As on the virtual clock, a run ends with the step in which its workload ends."""
_SECONDS_BETWEEN_PROGRESS = 0.1
_SHIM_RING, _SHIM_RING_OF_A_HOST = 2048, 8
_NIC_RING, _NIC_RINGS = 128, 1 << 15
"""Frames in the ring of a NIC's socket, and of all of them."""
_NIC_RING_LEAST = 28


Serve = Callable[[Channel, ExactDriver, Fabric, socket.socket, RouteChanges], None]
"""What the shim of an interactive lab does from its set-up on; it receives by the socket."""


def emulate_switches(channel: Channel, setup: SetUpShim, files: list[int], serve: Serve) -> None:
    """Does all the work of the shim."""
    routing = Channel.inherited(files.pop(0)) if setup.rerouted else None
    memory = [] if setup.interactive else [files.pop(0)]
    marker = files
    spec = spec_from_json(setup.spec)
    topology = spec.topology.build()
    ports = [p for p in captured_ports(spec, topology) if p.node in topology.switch]
    fabric = Fabric(
        spec,
        topology,
        NodeSubset.SWITCHES,
        subnet=setup.subnet,
        schedules_reroutes=not setup.interactive,
        exact=True,
    )
    with (
        fabric,
        ExactDriver(fabric, step_ps=STEP_PS, wake=channel.fileno()) as driver,
    ):
        capture = CaptureFile(fabric, PRIVATE / "capture", ports)
        fabric.connect()
        fabric.capture(ports)
        fabric.sample(flows_elsewhere=len(spec.workload().message_flows))
        wire = packet_socket()
        _attach_switches(driver, fabric, wire, plane=setup.plane)
        if marker:
            program, depths, curves = marker
            driver.share_marker(program, depths, curves, _marked_ports(setup))
        if routing is not None:
            serve(channel, driver, fabric, wire, RouteChanges(routing))
            return
        driver.join(memory[0])
        channel.send(ShimReady())
        channel.expect(Start)
        fabric.start()
        while _goes_on(driver):
            capture.drain()
        _send_result(channel, fabric.observe(), driver, capture, setup.out)


def emulate_nics(channel: Channel, setup: SetUpNics) -> None:
    """Does all the work of the NICs."""
    (memory,) = channel.take_files()
    queries, far = channel_pair()
    with closing(queries), far:
        _emulate_nics(channel, setup, memory, queries, far)


def _emulate_nics(
    channel: Channel, setup: SetUpNics, memory: int, queries: Channel, far: socket.socket
) -> None:
    spec = spec_of_nics(setup)
    topology = spec.topology.build()
    ports = [p for p in captured_ports(spec, topology) if p.node in topology.host]
    if setup.interactive:
        ports = []  # clients capture ports of switches
    poller = Poller(channel, queries)
    with Fabric(spec, topology, NodeSubset.HOSTS, subnet=setup.subnet, exact=True) as fabric:
        endpoints = HostNics(fabric, spec.workload(), setup.subnet, starts=setup.starts)
        with ExactDriver(fabric, step_ps=STEP_PS, wake=poller.fileno()) as driver:
            capture = CaptureFile(fabric, PRIVATE / "nic-capture", ports)
            fabric.capture(ports)
            fabric.sample(endpoints.flow_bytes, endpoints.flow_hosts)
            attach_nics(driver, fabric, setup.hosts)
            tables = NicTables(fabric, endpoints)
            channel.send(tables.layouts, [*tables.files, far.fileno()])
            start = channel.expect(Start)
            driver.join(memory)
            fabric.add_faults(tuple(map(Fault.model_validate, start.faults)), start.fault_numbers)
            fabric.start()
            endpoints.start()
            driver.finish_with(endpoints.workload)
            while _goes_on(driver, queries, poller):
                capture.drain()
                tables.post()
                channel.send(running(endpoints.progress(fabric.now_ns)))
                if poller.has_message(queries):
                    queries.send(change_faults(fabric, queries.receive()))
            tables.post()
            seen = endpoints.observe(fabric.observe())
            if setup.interactive:
                send_observation(channel, seen, Done())
            else:
                _send_result(channel, seen, driver, capture, setup.out)
        endpoints.close()


def _goes_on(
    driver: ExactDriver, queries: Channel | None = None, poller: Poller | None = None
) -> bool:
    """Runs for a short time. False: the run is over. Raises EOFError when the lab ends."""
    outcome = driver.run(seconds=_SECONDS_BETWEEN_PROGRESS)
    if outcome is Outcome.WOKEN:
        is_query = queries is not None and poller is not None and poller.has_message(queries)
        if not is_query:
            raise EOFError  # the lab ends
    return outcome is not Outcome.FINISHED


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


def _attach_switches(
    driver: ExactDriver, fabric: Fabric, opened: socket.socket, *, plane: str
) -> None:
    topology = fabric.topology
    hosts = len(topology.hosts)
    ring_frames = _SHIM_RING + _SHIM_RING_OF_A_HOST * hosts
    wire = driver.add_socket(opened, ring_frames=ring_frames)
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


def attach_nics(driver: ExactDriver, fabric: Fabric, tasks: Mapping[str, int]) -> None:
    topology = fabric.topology
    for host in topology.hosts:
        port = topology.ports[host.name][0]
        with entered(tasks[host.name]):
            opened = packet_socket(port.interface)
            attach_nic(driver, topology, host.name, opened, socket.if_nametoindex(port.interface))


def attach_nic(
    driver: ExactDriver, topology: Topology, host: str, opened: socket.socket, ifindex: int
) -> None:
    """Lets the NIC of this host send and receive by a socket on its interface."""
    hosts = len(topology.hosts)
    wire = driver.add_socket(opened, ring_frames=_nic_ring(hosts))
    room = max(_SHIM_RING_OF_A_HOST, _SHIM_RING // 2 // hosts)
    far = topology.peer[topology.ports[host][0]]
    driver.attach_end(wire, ifindex, far, host=host, room=room)


def _nic_ring(hosts: int) -> int:
    return max(_NIC_RING_LEAST, min(_NIC_RING, _NIC_RINGS // hosts))


def _marked_ports(setup: SetUpShim) -> dict[Port, int]:
    """The ports that eBPF marks, with the numbers of their interfaces in this namespace."""
    from emu.lab.marker.marking import marked_ports

    spec = spec_from_json(setup.spec)
    ports: Sequence[Port] = marked_ports(spec, spec.topology.build())
    return {port: socket.if_nametoindex(port.interface) for port in ports}
