"""The shim of a standing lab: it emulates until it is told to stop, and lets itself be looked at.

Five times a second it copies its counters to a board and does what it is asked to,
between one packet and the next: some microseconds each.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from emu.bindings.af_packet_driver import AfPacketDriver, Outcome
from emu.bindings.capture import captured_ports
from emu.bindings.fabric import Fabric
from emu.daemon.faults import change_faults
from emu.daemon.fidelity import share_of_shim
from emu.daemon.taps import Taps
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Done, Faults, Json, Look, Measure, Message, Start, Stop, Tap
from emu.lab.show import look
from emu.lab.sm_link import Steering
from emu.measure.counter_table import PORT
from emu.measure.seqlock import Board
from topologies.graph import Port

_SECONDS_BETWEEN_POSTS = 0.2
_SECONDS_TO_WAIT_FOR_PYTHON = 1e-4
"""How long a thread that deals out captures may keep Python's lock from the one that emulates."""


def stand(channel: Channel, driver: AfPacketDriver, fabric: Fabric, steering: Steering) -> None:
    """From the end of `Setup` to `Stop`."""
    ports = fabric.topology.switch_ports
    board = Board.new([fabric.topology.port_name[port] for port in ports], [*PORT.cells.items()])
    channel.send(Done({"board": board.legend}), [board.file])
    sys.setswitchinterval(_SECONDS_TO_WAIT_FOR_PYTHON)
    start = channel.expect(Start)
    fabric.start()
    with Taps(fabric, captured_ports(fabric.spec, fabric.topology)) as taps:
        while True:
            outcome = steering.run(driver, fabric, start.at_ns, seconds=_SECONDS_BETWEEN_POSTS)
            _post(board, fabric, ports)
            taps.take_unused_off()
            if outcome is Outcome.WOKEN:
                message = channel.receive()
                if isinstance(message, Stop):
                    return
                channel.send(Done(_answer(message, channel, fabric, driver, taps)))


def _answer(
    message: Message, channel: Channel, fabric: Fabric, driver: AfPacketDriver, taps: Taps
) -> Json:
    match message:
        case Look():
            return look(fabric)
        case Measure():
            return share_of_shim(fabric, driver)
        case Tap(port, since_start):
            (line,) = channel.take_files()
            taps.put_on(fabric.topology.port_named[port], line, since_start=since_start)
        case Faults():
            return change_faults(fabric, message)
    return {}


def _post(board: Board, fabric: Fabric, ports: Sequence[Port]) -> None:
    """Writes all counters to the board."""
    fabric.post_counters(board.begin(fabric.now_ns * 1000), ports)
    board.publish()
