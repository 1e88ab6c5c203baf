"""`python -m emu.lab.rnic_main FD`: the NICs of all hosts in a lab, and the workload on them.

Each NIC has a socket on its host's interface, in the host's namespace. Its frames can be captured
there, and other traffic of the host uses the same interface.
"""

from __future__ import annotations

import os
import socket
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NoReturn

from emu.bindings.af_packet_driver import AfPacketDriver, Outcome
from emu.bindings.fabric import Fabric, NodeSubset
from emu.bindings.host_nics import HostNics
from emu.bindings.ipoib import IpInterfaces
from emu.bindings.packet_socket import packet_socket
from emu.lab import ib0, tun
from emu.lab.exact_clock import emulate_nics
from emu.lab.fault_changes import change_faults
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.messages import Done, Ready, Start, Stop
from emu.lab.ipc.poller import Poller
from emu.lab.ipc.setup import SetUpNics
from emu.lab.netns import entered
from emu.lab.nic_process import spec_of_nics
from emu.lab.nic_tables import NicTables
from emu.lab.observation_file import send_observation
from emu.lab.processes import running
from emu.lab.rt_sched import be_punctual, processors_awake
from emu.lab.worker import serve
from emu.spec.fault import Fault
from traffic.graph import OperationGraph

_SECONDS_BETWEEN_PROGRESS = 0.1


def job(channel: Channel) -> None:
    """Sets up the NICs and carries out the workload.

    The lab receives the far end of a second channel, for queries about faults while the NICs work.
    The channel is closed when they are done.
    """
    channel.send(Ready(os.getpid()))
    setup = channel.expect(SetUpNics)
    if setup.exact:
        emulate_nics(channel, setup)
        return
    queries, far = channel_pair()
    with closing(queries), far:
        _work(channel, setup, queries, far)


def _work(channel: Channel, setup: SetUpNics, queries: Channel, far: socket.socket) -> None:
    spec, subnet = spec_of_nics(setup), setup.subnet
    topology = spec.topology.build()
    workload = OperationGraph() if setup.idle else spec.workload()
    poller = Poller(channel, queries)
    with Fabric(spec, topology, NodeSubset.HOSTS, subnet=subnet) as fabric:
        endpoints = HostNics(fabric, workload, subnet, ip=setup.ip, starts=setup.starts)
        with AfPacketDriver(fabric, slowdown=setup.slowdown, wake=poller.fileno()) as driver:
            fabric.sample(endpoints.flow_bytes, endpoints.flow_hosts)
            attach(driver, fabric, setup)
            fabric.prefault()
            be_punctual()
            tables = NicTables(fabric, endpoints)
            channel.send(tables.layouts, [*tables.files, far.fileno()])
            start = channel.expect(Start)
            nics = _Nics(channel, queries, poller, start, driver, fabric, endpoints, tables)
            if endpoints.ip:
                plug_in(driver, endpoints.ip, setup)
            fabric.add_faults(tuple(map(Fault.model_validate, start.faults)))
            fabric.start()
            if setup.idle:
                nics.idle()
            with processors_awake():
                nics.work()
            seen = replace(fabric.observe(), timing=driver.timing())
            send_observation(channel, endpoints.observe(seen), Done())
        endpoints.close()


def attach(driver: AfPacketDriver, fabric: Fabric, setup: SetUpNics) -> None:
    """Gives each NIC a socket on its host's interface."""
    topology = fabric.topology
    for host in topology.hosts:
        port = topology.ports[host.name][0]
        with entered(setup.hosts[host.name]):
            wire = driver.add_socket(packet_socket(port.interface))
            ifindex = socket.if_nametoindex(port.interface)
        driver.attach_end(wire, ifindex, topology.peer[port])


def plug_in(driver: AfPacketDriver, ip: IpInterfaces, setup: SetUpNics) -> None:
    """Opens the hosts' ib0 devices. An earlier NIC process must have ended."""
    for host, interface in ip.of.items():
        with entered(setup.hosts[host]):
            driver.add_tun(tun.plug_in(ib0.NAME), interface)


@dataclass(frozen=True)
class _Nics:
    """The running NICs, and the channels to the lab."""

    channel: Channel
    queries: Channel
    poller: Poller
    start: Start
    driver: AfPacketDriver
    fabric: Fabric
    endpoints: HostNics
    tables: NicTables

    def work(self) -> None:
        """Runs until the workload and the TCP flows are over, or the spec's time limit."""
        self.endpoints.start()
        if self.fabric.spec.streams().flows:
            while self._go_on() is Outcome.PAUSED:
                self._report()
            self.channel.expect(Stop)
        self.driver.finish_with(self.endpoints.workload)
        while self._go_on() is Outcome.PAUSED and not self._is_late():
            self._report()
        self.tables.post()

    def idle(self) -> NoReturn:
        """Runs until the lab ends, or ends this process."""
        while self._go_on() is Outcome.PAUSED:
            self.tables.post()
        raise EOFError

    def _go_on(self) -> Outcome:
        while True:
            outcome = self.driver.run(self.start.at_ns, seconds=_SECONDS_BETWEEN_PROGRESS)
            if outcome is not Outcome.WOKEN or not self.poller.has_message(self.queries):
                return outcome
            self.queries.send(change_faults(self.fabric, self.queries.receive()))

    def _is_late(self) -> bool:
        return self.fabric.now_ns * 1000 >= self.fabric.spec.time_limit_ps

    def _report(self) -> None:
        self.tables.post()
        self.channel.send(running(self.endpoints.progress(self.fabric.now_ns)))


if __name__ == "__main__":
    serve(job)
