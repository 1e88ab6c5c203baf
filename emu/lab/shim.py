"""The shim: emulates all switches and cables of a lab, from its set-up to `Stop`."""

from __future__ import annotations

import socket
from collections.abc import Set
from dataclasses import replace
from pathlib import Path

from emu.bindings.af_packet_driver import AfPacketDriver, Outcome
from emu.bindings.capture import CaptureFile, captured_ports
from emu.bindings.fabric import Fabric, NodeSubset
from emu.bindings.packet_socket import packet_socket
from emu.daemon.exact_shim import serve_exact_shim
from emu.daemon.shim import serve_shim
from emu.lab.exact_clock import emulate_switches
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Start, Stop
from emu.lab.ipc.setup import SetUpShim, ShimReady, ShimStopped
from emu.lab.namespace import PRIVATE
from emu.lab.observation_file import send_observation
from emu.lab.routing_link import RoutingLink
from emu.lab.rt_sched import be_punctual
from emu.spec.scenario import spec_from_json

_SECONDS_A_TIME = 60.0
_SECONDS_BETWEEN_DRAINS = 0.05
RING_FRAMES = 2048
"""The frames that the kernel keeps while the shim is not scheduled: 15 ms at its highest rate."""


def emulate(channel: Channel) -> None:
    """Does all the work of the shim. The calling process is in its network namespace."""
    setup = channel.expect(SetUpShim)
    files = channel.take_files()
    if setup.exact:
        emulate_switches(channel, setup, files, serve_exact_shim)
        return
    spec = spec_from_json(setup.spec)
    topology = spec.topology.build()
    routing = RoutingLink(channel, _take_routing_channel(setup, files))
    cpu_socket = socket.socket(fileno=files.pop(0)) if setup.cpu_ports else None
    fabric = Fabric(
        spec,
        topology,
        NodeSubset.SWITCHES,
        subnet=setup.subnet,
        marks=setup.marker == "shim",
        schedules_reroutes=not setup.interactive,
    )
    with (
        fabric,
        AfPacketDriver(fabric, slowdown=setup.slowdown, wake=routing.fileno()) as driver,
    ):
        capture = CaptureFile(fabric, PRIVATE / "capture")
        fabric.connect()
        fabric.capture(captured_ports(spec, topology))
        fabric.sample()
        _attach(driver, fabric, setup)
        if cpu_socket is not None:
            _attach_control_planes(driver, fabric, setup, cpu_socket)
        if files:
            driver.share_marker(*files)
        fabric.prefault()
        be_punctual()
        if setup.interactive:
            serve_shim(channel, driver, fabric, routing)
            return
        channel.send(ShimReady())
        _run(channel, driver, fabric, routing, capture)
        observation = replace(fabric.observe(), timing=driver.timing())
        captures = capture.convert(Path(setup.out))
        stopped = ShimStopped({name: str(path) for name, path in captures.items()})
        send_observation(channel, observation, stopped)


def _take_routing_channel(setup: SetUpShim, files: list[int]) -> Channel | None:
    """The channel to the lab's routing thread, if it has one. Removes it from the open files."""
    return Channel.inherited(files.pop(0)) if setup.rerouted else None


def _attach(driver: AfPacketDriver, fabric: Fabric, setup: SetUpShim) -> None:
    """Opens one socket for all interfaces: the hosts' cables and the bridges' ports."""
    if setup.marker == "red":
        driver.queue_outside()
    wire = driver.add_socket(packet_socket(), ring_frames=RING_FRAMES)
    topology = fabric.topology
    unpaced = _with_a_kernel_that_sends(fabric, setup)
    for host in topology.hosts:
        port = topology.ports[host.name][0]
        interface = socket.if_nametoindex(port.interface)
        driver.attach_end(wire, interface, port, paced=host.name not in unpaced)
    if setup.plane == "ovs":
        for switch in topology.switches:
            for port in topology.ports[switch.name]:
                driver.attach_datapath(wire, socket.if_nametoindex(port.interface), port)


def _attach_control_planes(
    driver: AfPacketDriver, fabric: Fabric, setup: SetUpShim, opened: socket.socket
) -> None:
    channel = driver.add_socket(opened)
    for name, interface in setup.cpu_ports.items():
        port = fabric.topology.port_named[name]
        priority = fabric.spec.switch(port.node).routing.bgp.priority
        driver.attach_cpu(channel, interface, port, priority)


def _with_a_kernel_that_sends(fabric: Fabric, setup: SetUpShim) -> Set[str]:
    """The hosts whose kernel sends on Ethernet, faster than the cable's rate. NICs keep to their
    cables' rates, and they also send the packets of IP over InfiniBand."""
    if setup.interactive:
        return fabric.topology.host.keys()
    if not fabric.spec.fabric_kind.is_ethernet:
        return set()
    streams = fabric.spec.streams().message_flows
    return {host for flow in streams for host in (flow.src, flow.dst)}


def _run(
    channel: Channel,
    driver: AfPacketDriver,
    fabric: Fabric,
    routing: RoutingLink,
    capture: CaptureFile,
) -> None:
    """Emulates until the lab sends `Stop`."""
    start = channel.expect(Start)
    fabric.start()
    with capture.draining(_SECONDS_BETWEEN_DRAINS):
        while routing.run(driver, fabric, start.at_ns, seconds=_SECONDS_A_TIME) is Outcome.PAUSED:
            pass
    channel.expect(Stop)
