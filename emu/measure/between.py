"""Two snapshots of a running lab -> a recording of the time between them.

Code that judges the recording of a run can therefore judge a lab, too. A counter's value is its
growth between the snapshots; there are two samples, at 0 and at the end. The flows are those that
were active all the time: for a flow that began or ended in between, the time during which it wanted
to send is unknown. A statement about a whole run ("never marked") is judged from the start of the
traffic, with all its flows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from emu.clocks import VIRTUAL
from emu.measure.counter_table import PORT
from emu.measure.lab_snapshot import FlowSnapshot, LabSnapshot
from emu.measure.merge import merge_observations
from emu.measure.observation import Observation, Samples
from emu.measure.raw_counters import RawCounters
from emu.measure.recording import Recording
from emu.measure.records import Counters, Deadlock, FailedQueuePair, FaultRecord, FlowRecord
from emu.spec.scenario import Spec
from topologies.graph import Topology
from traffic.graph import Flow

_OF_STORMS = "watchdog_detected"


def recording_between(spec: Spec, before: LabSnapshot, after: LabSnapshot) -> Recording:
    """`spec`: the lab's, with its present faults. `after` is the later snapshot."""
    if before.traffic.number != after.traffic.number:
        before = replace(before, hosts={}, host_ports={}, flows={})
    topology = spec.topology.build()
    ports: dict[str, RawCounters] = {
        name: _grown(earlier.get(name), own)
        for earlier, later in (
            (before.ports, after.ports),
            (before.host_ports, _host_ports(topology, after)),
        )
        for name, own in later.items()
    }
    nics = {host: _fewer(own, before.hosts.get(host, {})) for host, own in after.hosts.items()}
    flows = tuple(_under_way(spec, before.flows, after.flows))
    grown = {
        flow.name: after.flows[flow.name].delivered - before.flows[flow.name].delivered
        for flow in flows
    }
    seen = Observation(
        ports=ports,
        samples=_samples(after.time_ns - before.time_ns, ports),
        frames_exhausted=0,
        captures_missed=0,
        nics=nics,
        faults=tuple(_faults(after)),
        failed_queue_pairs=tuple(_failed(flows, after)),
    )
    return _recording(spec, topology, seen, flows, grown)


def recording_so_far(spec: Spec, before: LabSnapshot, after: LabSnapshot) -> Recording:
    """From the start of the traffic to the second snapshot. The first one shows which deadlocks
    last."""
    nothing = replace(
        after,
        time_ns=0,
        ports={},
        traffic=replace(after.traffic, number=0),
    )
    flows = tuple(_all_flows(spec, after))
    whole = recording_between(spec, nothing, after)
    return replace(
        whole,
        flows=flows,
        deadlocks=tuple(_lasting(before, after)),
        failed_queue_pairs=tuple(_failed(flows, after)),
    )


def _recording(
    spec: Spec,
    topology: Topology,
    seen: Observation,
    flows: tuple[FlowRecord, ...],
    delivered: Mapping[str, int],
) -> Recording:
    recording = merge_observations(
        spec,
        topology,
        [seen],
        plane="",
        clock=VIRTUAL,  # its fidelity is judged elsewhere
        slowdown=1,
        marker="none",
        wall_seconds=0,
        captures={},
        streams=flows,
    )
    resent = sum(own["retransmitted_packets"] for own in (seen.nics or {}).values())
    rows = np.array([[0] * len(delivered), [*delivered.values()]], np.int64)
    return replace(
        recording,
        totals=recording.totals | {"retransmitted_packets": resent},
        series=replace(recording.series, flows=tuple(delivered), flow_bytes=rows),
    )


def _host_ports(topology: Topology, snapshot: LabSnapshot) -> Mapping[str, RawCounters]:
    """Counters of the NICs' ports; zeros where there are no NICs."""
    nothing = {
        name: [0] * len(cells) for name, cells in next(iter(snapshot.ports.values())).items()
    }
    names = (topology.port_name[topology.ports[host][0]] for host in topology.host)
    return {name: snapshot.host_ports.get(name, nothing) for name in names}


def _fewer(now: Counters, before: Counters) -> Counters:
    return {name: count - before.get(name, 0) for name, count in now.items()}


def _grown(before: RawCounters | None, after: RawCounters) -> dict[str, list[int]]:
    if before is None:
        return dict(after)
    grown = {
        name: cells
        if name in PORT.levels
        else [now - was for was, now in zip(before[name], cells, strict=True)]
        for name, cells in after.items()
    }
    over = before["watchdog_restored"]  # a storm that lasts counts as found
    grown[_OF_STORMS] = [now - was for was, now in zip(over, after[_OF_STORMS], strict=True)]
    return grown


def _under_way(
    spec: Spec, before: Mapping[str, FlowSnapshot], after: Mapping[str, FlowSnapshot]
) -> Iterator[FlowRecord]:
    for flow in spec.fabric_flows():
        then, now = before.get(flow.name), after.get(flow.name)
        if then and now and then.delivered and now.delivered < now.bytes:
            yield _record(flow, now)


def _all_flows(spec: Spec, snapshot: LabSnapshot) -> Iterator[FlowRecord]:
    for flow in spec.fabric_flows():
        if flow.name in snapshot.flows:
            yield _record(flow, snapshot.flows[flow.name])


def _record(flow: Flow, snapshot: FlowSnapshot) -> FlowRecord:
    return FlowRecord(
        name=flow.name,
        traffic=flow.traffic,
        src=flow.src,
        dst=flow.dst,
        op=flow.verb.value,
        bytes=snapshot.bytes,
        start_ns=0,
        end_ns=None,
        retransmitted_packets=0,
        completed=snapshot.delivered >= snapshot.bytes,
        delivered_bytes=snapshot.delivered,
    )


def _failed(flows: tuple[FlowRecord, ...], snapshot: LabSnapshot) -> Iterator[FailedQueuePair]:
    for flow in flows:
        own = snapshot.flows[flow.name]
        if own.status:
            yield FailedQueuePair(flow.name, flow.src, flow.dst, own.failed_ns, own.status)


def _faults(snapshot: LabSnapshot) -> Iterator[FaultRecord]:
    """The active faults, with their counts so far. Times are the lab's."""
    for fault in snapshot.faults:
        if fault.state(snapshot.time_ns) == "active":
            assert fault.at_ns is not None
            yield FaultRecord(
                name=fault.name,
                kind=fault.kind,
                place=fault.place,
                at_ns=fault.at_ns,
                end_ns=fault.end_ns,
                packets_seen=fault.packets_seen,
                hits=fault.hits,
                packets_dropped=fault.packets_dropped,
            )


def _lasting(before: LabSnapshot, after: LabSnapshot) -> Iterator[Deadlock]:
    """Deadlocks in which no port has sent a packet since the first snapshot."""
    for deadlock in after.deadlocks:
        sent = (_sent(before, port) != _sent(after, port) for port in deadlock.ports)
        if not any(sent):
            yield deadlock


def _sent(snapshot: LabSnapshot, port: str) -> int:
    """Packets: pause frames go on in a deadlock."""
    return sum(snapshot.ports[port]["tx_packets"])


def _samples(window_ns: int, ports: Mapping[str, RawCounters]) -> Samples:
    names = tuple(ports)

    def column(counter: str) -> NDArray[np.int64]:
        grown = [sum(ports[name][counter]) for name in names]
        return np.array([[0] * len(names), grown], np.int64)

    return Samples(
        time_ns=np.array([0, window_ns], np.int64),
        ports=names,
        queue_bytes=column("queued_bytes"),
        buffer_bytes=column("held_bytes"),
        tx_bytes=column("tx_wire_bytes"),
        paused_ns=column("paused") // 1000,
        credit_wait_ns=column("xmit_wait") // 1000,
        flow_bytes=np.zeros((2, 0), np.int64),
    )
