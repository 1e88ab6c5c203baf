"""The shim of an interactive lab: it emulates until `Stop`, and answers queries.

Five times a second it copies its counters to shared memory, between one packet and the next. Each
copy and each answer takes some microseconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from emu.bindings.af_packet_driver import AfPacketDriver, Outcome
from emu.bindings.capture import captured_ports
from emu.bindings.fabric import Fabric
from emu.daemon.fidelity import timing_of_shim
from emu.daemon.taps import Taps
from emu.lab.fault_changes import change_faults
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Message
from emu.lab.ipc.messages import Done, Start, Stop
from emu.lab.ipc.queries import ClearFault, GetPorts, GetTiming, ListFaults, SetFault, Tap
from emu.lab.ipc.setup import ShimReady
from emu.lab.routing_link import RoutingLink
from emu.lab.show import ports_snapshot
from emu.measure.counter_table import PORT
from emu.measure.seqlock import SharedCounters
from topologies.graph import Port

_SECONDS_BETWEEN_COPIES = 0.2
_SECONDS_TO_WAIT_FOR_PYTHON = 1e-4
"""The longest time for which the thread of the captures may hold Python's lock."""


def serve_shim(
    channel: Channel, driver: AfPacketDriver, fabric: Fabric, routing: RoutingLink
) -> None:
    """Emulates and answers queries, from the end of the set-up to `Stop`."""
    ports = fabric.topology.switch_ports
    names = [fabric.topology.port_name[port] for port in ports]
    counters = SharedCounters.new(names, [*PORT.cells.items()])
    channel.send(ShimReady(counters.layout), [counters.file])
    sys.setswitchinterval(_SECONDS_TO_WAIT_FOR_PYTHON)
    start = channel.expect(Start)
    fabric.start()
    with Taps(fabric, captured_ports(fabric.spec, fabric.topology)) as taps:
        while True:
            outcome = routing.run(driver, fabric, start.at_ns, seconds=_SECONDS_BETWEEN_COPIES)
            _publish(counters, fabric, ports)
            taps.take_unused_off()
            if outcome is Outcome.WOKEN:
                message = channel.receive()
                if isinstance(message, Stop):
                    return
                channel.send(_answer(message, channel, fabric, driver, taps))


def _answer(
    message: Message, channel: Channel, fabric: Fabric, driver: AfPacketDriver, taps: Taps
) -> Message:
    match message:
        case GetPorts():
            return ports_snapshot(fabric)
        case GetTiming():
            return timing_of_shim(fabric, driver)
        case Tap(port, since_start):
            (line,) = channel.take_files()
            taps.put_on(fabric.topology.port_named[port], line, since_start=since_start)
        case ListFaults() | SetFault() | ClearFault():
            return change_faults(fabric, message)
    return Done()


def _publish(counters: SharedCounters, fabric: Fabric, ports: Sequence[Port]) -> None:
    fabric.post_counters(counters.begin(fabric.now_ns * 1000), ports)
    counters.publish()
