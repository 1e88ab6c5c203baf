"""Takes snapshots of a background lab."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from emu.bindings.host_nics import FAILURES
from emu.daemon.messages import FaultSnapshot, GetSnapshot, Snapshot, TrafficStatus
from emu.daemon.session import Asks
from emu.lab.nic_process import FLOW_COLUMNS, is_of_port, port_counters
from emu.measure.counter_layout import Layout
from emu.measure.lab_snapshot import FlowSnapshot, LabSnapshot, SeenFault, TrafficState
from emu.measure.records import Fidelity
from emu.measure.seqlock import Rows, SharedCounters
from emu.spec.fault import Fault
from emu.spec.scenario import spec_from_json


def take_snapshot(lab: Asks) -> LabSnapshot:
    """A snapshot of the lab now. Raises FabricError if the lab has ended."""
    seen, files = lab.ask(GetSnapshot())
    time_ps, ports = _read(files[0], seen.ports)
    hosts, flows = _nic_counters(seen, files[1:])
    topology = spec_from_json(seen.status.spec).topology.build()
    return LabSnapshot(
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
        traffic=_traffic(seen.status.traffic),
        faults=tuple(map(_fault, seen.faults)),
        links=seen.status.links,
        deadlocks=seen.deadlocks,
    )


def _nic_counters(seen: Snapshot, files: Sequence[int]) -> tuple[Rows, Rows]:
    """The counters of hosts, and of flows; empty before the first workload."""
    if seen.hosts is None or seen.flows is None:
        return {}, {}
    hosts, flows = files
    return _read(hosts, seen.hosts)[1], _read(flows, seen.flows)[1]


def _read(file: int, layout: Layout) -> tuple[int, Rows]:
    counters = SharedCounters(file, layout)
    try:
        return counters.read()
    finally:
        counters.close()


def _flow(cells: dict[str, list[int]]) -> FlowSnapshot:
    of_all, delivered, status, failed_ns = (cells[name][0] for name, _ in FLOW_COLUMNS)
    return FlowSnapshot(of_all, delivered, FAILURES.get(status), failed_ns)


def _fault(seen: FaultSnapshot) -> SeenFault:
    one = seen.status
    spec = None
    if seen.spec is not None:
        spec = Fault.model_validate({**seen.spec, "name": one.name})
    return SeenFault(
        one.name,
        one.kind,
        one.place,
        one.at_ns,
        one.end_ns,
        one.packets_seen,
        one.hits,
        one.packets_dropped,
        seen.cables,
        spec,
    )


def _traffic(status: TrafficStatus) -> TrafficState:
    return TrafficState(
        status.number,
        status.state,
        status.progress,
        tuple(map(asdict, status.flows)),
        (status.fidelity or Fidelity()).verdict,
        status.error or "",
    )
