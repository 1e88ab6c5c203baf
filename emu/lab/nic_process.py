"""The process that has the hosts' NICs, as the rest of the lab knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Ready, Setup
from emu.lab.ipc.rpc import Line
from emu.lab.processes import wait_done
from emu.measure.counter_table import PORT
from emu.measure.counters import XMIT_WAIT
from emu.measure.seqlock import Board

_OF_PORT = "port "
PORT_COLUMNS = [(_OF_PORT + name, width) for name, width in PORT.cells.items()]
"""Beside a NIC's counters, those of its port."""
FLOW_COLUMNS = [("bytes", 1), ("delivered", 1), ("status", 1), ("failed_ns", 1)]


def is_of_port(name: str) -> bool:
    """Whether a column of a host's row is of its port."""
    return name.startswith(_OF_PORT)


def port_counters(row: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Those in a host's row."""
    return {name[len(_OF_PORT) :]: own for name, own in row.items() if is_of_port(name)}


@dataclass(frozen=True)
class NicProcess:
    """NICs that are ready to start, or have started."""

    pid: int
    channel: Channel
    line: Line
    """Answers while they work."""
    board: Board
    """What they count on: a row for each host."""
    flows: Board
    """How far the workload's flows are."""

    def close_boards(self) -> None:
        self.board.close()
        self.flows.close()


def set_up_nics(channel: Channel, setup: Setup, lab: str) -> NicProcess:
    """Sets the NICs of this lab up, in a process that has just begun."""
    pid = channel.expect(Ready).pid
    channel.send(setup)
    legends = wait_done(channel)
    board, flows, line = channel.take_files()
    return NicProcess(
        pid,
        channel,
        Line(Channel.inherited(line), "the NIC process", lab),
        Board(board, **legends["board"]),
        Board(flows, **legends["flows"]),
    )


def waits_on(nics: NicProcess | None) -> dict[str, int]:
    """PortXmitWait of each host, as its NIC has counted it so far."""
    rows = nics.board.read()[1] if nics else {}
    return {host: counters[XMIT_WAIT][0] for host, counters in rows.items()}
