"""Looks at a standing lab: what it has counted up to now, read from its boards."""

from __future__ import annotations

from emu.bindings.host_nics import FAILURES
from emu.daemon.client import StandingLab
from emu.lab.ipc.messages import Json
from emu.lab.nic_process import FLOW_COLUMNS, is_of_port, port_counters
from emu.measure.look import FlowLook, LinkChange, Look, SeenFault, TrafficState
from emu.measure.progress import Progress
from emu.measure.recording import Deadlock
from emu.measure.seqlock import Board, Rows
from emu.spec.fault import Fault
from emu.spec.scenario import spec_from_json


def look_at(lab: StandingLab) -> Look:
    """Raises FabricError when the lab has ended."""
    value, files = lab.ask("look")
    legends = [value[name] for name in ("ports", "hosts", "flows") if value[name] is not None]
    (time_ps, ports), *nics = map(_read, files, legends)
    hosts, flows = (rows for _, rows in nics) if nics else ({}, {})
    topology = spec_from_json(value["spec"]).topology.build()
    return Look(
        time_ns=time_ps // 1000,
        ports=ports,
        hosts={
            host: {name: cells[0] for name, cells in own.items() if not is_of_port(name)}
            for host, own in hosts.items()
        },
        host_ports={
            topology.port_name[topology.ports[host][0]]: port_counters(own)
            for host, own in hosts.items()
        },
        flows={name: _flow(own) for name, own in flows.items()},
        traffic=_traffic(value["traffic"]),
        faults=tuple(map(_fault, value["faults"])),
        links=tuple(
            LinkChange(one["at_ns"], tuple(one["down"]), one["in_force_ns"])
            for one in value["links"]
        ),
        deadlocks=tuple(
            Deadlock(one["found_ns"], one["priority"], tuple(one["ports"]))
            for one in value["deadlocks"]
        ),
    )


def _flow(cells: dict[str, list[int]]) -> FlowLook:
    of_all, delivered, status, failed_ns = (cells[name][0] for name, _ in FLOW_COLUMNS)
    return FlowLook(of_all, delivered, FAILURES.get(status), failed_ns)


def _fault(told: Json) -> SeenFault:
    spec = told.get("spec")
    cables = tuple(told.get("cables", ()))
    known = None if spec is None else Fault.model_validate({**spec, "name": told["name"]})
    return SeenFault(**{**told, "cables": cables, "spec": known})


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
        state["error"] or "",
    )
