"""The process that has the hosts' NICs, as the rest of the lab knows it."""

from __future__ import annotations

from dataclasses import dataclass

from emu.lab.channel import Channel
from emu.lab.line import Line
from emu.lab.messages import Ready, Setup
from emu.lab.processes import wait_done
from emu.measure.board import Board
from emu.measure.counters import XMIT_WAIT


@dataclass(frozen=True)
class NicProcess:
    """NICs that are ready to start, or have started."""

    pid: int
    channel: Channel
    line: Line
    """Answers while they work."""
    board: Board
    """What they count on."""


def set_up_nics(channel: Channel, setup: Setup) -> NicProcess:
    """Sets the NICs up, in a process that has just begun."""
    pid = channel.expect(Ready).pid
    channel.send(setup)
    legend = wait_done(channel)["board"]
    board, line = channel.take_files()
    return NicProcess(pid, channel, Line(Channel.inherited(line)), Board(board, **legend))


def waits_on(nics: NicProcess | None) -> dict[str, int]:
    """PortXmitWait of each host, as its NIC has counted it so far."""
    rows = nics.board.read()[1] if nics else {}
    return {host: counters[XMIT_WAIT][0] for host, counters in rows.items()}
