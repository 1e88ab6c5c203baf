"""Looks at a standing lab: what it has counted up to now, read from its boards."""

from __future__ import annotations

from emu.lab.messages import Json
from emu.lab.standing.client import StandingLab
from emu.measure.board import Board, Rows
from emu.measure.look import Look, SeenFault, TrafficState
from emu.measure.progress import Progress


def look_at(lab: StandingLab) -> Look:
    """Raises FabricError when the lab has ended."""
    value, files = lab.ask("look")
    (time_ps, ports), *nics = map(_read, files, (value["ports"], value["hosts"]))
    hosts = nics[0][1] if nics else {}
    return Look(
        time_ns=time_ps // 1000,
        ports=ports,
        hosts={
            host: {name: cells[0] for name, cells in own.items()} for host, own in hosts.items()
        },
        traffic=_traffic(value["traffic"]),
        faults=tuple(SeenFault(**fault) for fault in value["faults"]),
    )


def _read(file: int, legend: Json) -> tuple[int, Rows]:
    board = Board(file, **legend)
    try:
        return board.read()
    finally:
        board.close()


def _traffic(state: Json) -> TrafficState:
    progress = state["progress"]
    return TrafficState(
        state["number"],
        state["state"],
        None if progress is None else Progress(**progress),
        tuple(state["flows"]),
        (state["fidelity"] or {"verdict": "ok"})["verdict"],
    )
