"""Puts the views of a run's processes together into one recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emu.clocks import Clock
from emu.fabric_kind import SCALE_UP
from emu.measure.counter_table import CONGESTION, LOSSLESS, OTHER, PORT, WATCHDOG
from emu.measure.counters import (
    PORT_COUNTERS,
    PRIORITIES,
    ethernet_counters,
    infiniband_counters,
    lost_in_transit,
)
from emu.measure.cpu import NO_CPU_SAMPLES, CpuSamples
from emu.measure.fct import alone_ns
from emu.measure.fidelity import bucket_value, fidelity_of
from emu.measure.observation import Histogram, Observation
from emu.measure.raw_counters import CounterTable
from emu.measure.recording import NO_MACHINE, MachineSeries, Recording, Series
from emu.measure.records import Counters, FaultRecord, FlowRecord, MarkedBy
from emu.measure.requests import Requests
from emu.measure.timeline import LOSSES, Timeline, together
from emu.spec.fault import KINDS, fault_names
from emu.spec.fault.kind import LostLinks
from emu.spec.headroom import headroom_of
from emu.spec.rules.warnings import warnings_of
from emu.spec.scenario import Spec
from emu.units import PS_PER_S, write_time
from topologies.graph import Port, Topology


def merge_observations(
    spec: Spec,
    topology: Topology,
    observations: Sequence[Observation],
    *,
    plane: str,
    clock: Clock,
    slowdown: float,
    marker: MarkedBy,
    wall_seconds: float,
    captures: Mapping[str, Path],
    cpu: CpuSamples = NO_CPU_SAMPLES,
    notes: Sequence[str] = (),
    streams: Sequence[FlowRecord] = (),
) -> Recording:
    """All observations of one run, and its TCP flows -> its recording."""
    raw = CounterTable.joined(seen.ports for seen in observations)
    for seen in observations:
        raw = raw.plus(seen.stand_ins)
    nics = {host: nic for seen in observations for host, nic in (seen.nics or {}).items()}
    flows = tuple(flow for seen in observations for flow in seen.flows)
    faults = _faults(spec, observations)
    name_ports = PORT_COUNTERS[spec.fabric_kind.framing]
    edge = {topology.port_name[topology.ports[host][0]]: host for host in topology.host}
    at_hosts = _host_ports(spec, topology, raw.only(edge))
    timeline = together([seen.timing.timeline for seen in observations if seen.timing])
    missed = sum(seen.captures_missed for seen in observations)
    missed_note = [f"{missed} frames are missing from the captures: they came too fast"]
    return Recording(
        name=spec.name,
        fabric=spec.fabric,
        plane=plane,
        clock=clock.name,
        slowdown=slowdown,
        seed=spec.seed,
        marker=marker,
        flows=(*flows, *streams),
        requests=_requests(spec, topology, observations),
        jobs=tuple(job for seen in observations for job in seen.jobs),
        steps=tuple(step for seen in observations for step in seen.steps),
        scale_up={
            name: own
            for seen in observations
            for name, own in PORT_COUNTERS[SCALE_UP.framing](seen.scale_up).items()
        },
        deadlocks=tuple(found for seen in observations for found in seen.deadlocks),
        failed_queue_pairs=tuple(qp for seen in observations for qp in seen.failed_queue_pairs),
        sweeps=tuple(sweep for seen in observations for sweep in seen.sweeps),
        ports=name_ports(raw.only(port for port in raw if port not in edge)),
        hosts={host: nics[host] | at_hosts[port] for port, host in edge.items()},
        totals=_totals(spec, topology, raw, nics, (*flows, *streams))
        | {
            "drops_fault": sum(fault.packets_dropped for fault in faults),
            "deadlocks": sum(len(seen.deadlocks) for seen in observations),
        },
        series=_series(observations, [flow.name for flow in flows], timeline, slowdown),
        fidelity=fidelity_of(
            observations,
            timeline,
            slowdown=slowdown,
            budget_ns=0 if clock.is_exact else mtu_time_ns(spec, topology),
            headroom_ns=0 if clock.is_exact else headroom_time_ns(spec, topology),
            transit_lost=lost_in_transit(raw),
            dropped_by_faults=_dropped_lossless(faults),
        ),
        wall_seconds=wall_seconds,
        cpu_seconds=cpu.last,
        machine=NO_MACHINE if clock.is_exact else _machine(timeline, cpu, slowdown),
        faults=faults,
        captures=dict(captures),
        notes=(
            *warnings_of(spec),
            *_path_notes(spec),
            *_sampling_note(spec, observations[0].samples.time_ns),
            *notes,
            *(missed_note if missed else []),
        ),
    )


def _host_ports(spec: Spec, topology: Topology, raw: CounterTable) -> dict[str, Counters]:
    """A host has the same counters in every run, used or not. On InfiniBand it has the data lanes
    of its switch."""
    if not spec.fabric_kind.is_ethernet:
        leaves = (topology.peer[topology.port_named[port]].node for port in raw)
        return infiniband_counters(raw, vls=[spec.switch(leaf).credits.vls for leaf in leaves])
    return ethernet_counters(raw, whole=True)


def _requests(spec: Spec, topology: Topology, observations: Sequence[Observation]) -> Requests:
    """Those of the process that has seen flows, with what they would take alone."""
    seen = next((seen.requests for seen in observations if seen.flows), None)
    if seen is None:
        return Requests()
    return replace(seen, alone_ns=alone_ns(spec, topology)).asked_for()


def _dropped_lossless(faults: Sequence[FaultRecord]) -> int:
    """Lossless packets that the spec wants dropped."""
    return sum(fault.hits for fault in faults if KINDS[fault.kind].drops_lossless)


def _faults(spec: Spec, observations: Sequence[Observation]) -> tuple[FaultRecord, ...]:
    """Each fault once, as the spec lists them: its parts may be in different processes, and
    both of them see a lost link."""
    whole: dict[str, FaultRecord] = {}
    for part in (fault for seen in observations for fault in seen.faults):
        so_far = whole.setdefault(
            part.name, replace(part, packets_seen=0, hits=0, packets_dropped=0)
        )
        whole[part.name] = replace(
            so_far,
            packets_seen=so_far.packets_seen + part.packets_seen,
            hits=_hits(so_far, part),
            packets_dropped=so_far.packets_dropped + part.packets_dropped,
        )
    return tuple(whole[name] for name in fault_names(spec.faults) if name in whole)


def _hits(one: FaultRecord, other: FaultRecord) -> int:
    """Those of two parts of a fault. Both ends of a cable see that its link is lost."""
    is_seen_twice = issubclass(KINDS[one.kind], LostLinks)
    return max(one.hits, other.hits) if is_seen_twice else one.hits + other.hits


def mtu_time_ns(spec: Spec, topology: Topology) -> int:
    """Serialisation of the largest data packet on the fastest link, in emulated ns."""
    fastest = max(cable.rate_bps for cable in topology.cables)
    return spec.largest_frame_bytes * 8 * PS_PER_S // fastest // 1000


def headroom_time_ns(spec: Spec, topology: Topology) -> int:
    """The longest that any port's headroom takes to fill at its link's rate, in emulated ns."""
    ports = topology.switch_ports
    times = (8 * 10**9 * headroom_of(spec, port) // topology.cable[port].rate_bps for port in ports)
    return max(times, default=0)


def _totals(
    spec: Spec,
    topology: Topology,
    raw: CounterTable,
    nics: Mapping[str, Counters],
    flows: Sequence[FlowRecord],
) -> Counters:
    ports = topology.switch_ports
    of_switches = raw.only(map(topology.port_name.__getitem__, ports))
    congestion = [of_switches.counter(row.name) for row in PORT.drops(CONGESTION)]
    drops = np.sum(congestion, axis=0)[:, PRIORITIES]
    lossless = np.array([_lossless(spec, port) for port in ports], np.bool_)

    def dropped(kind: int) -> int:
        return sum(raw.total(row.name) for row in PORT.drops(kind, injected=False))

    return {
        "packets": sum(nic["tx_packets"] for nic in nics.values()),
        "packet_hops": of_switches.total("tx_packets"),
        "drops_lossless": int(drops[lossless].sum()) + dropped(LOSSLESS),
        "drops_lossy": int(drops[~lossless].sum()),
        "drops_watchdog": dropped(WATCHDOG),
        "drops_other": dropped(OTHER),
        "ce_marked": raw.total("ecn_marked"),
        "cnp": sum(nic["np_cnp_sent"] for nic in nics.values()),
        "pause_frames": raw.total("tx_pause_frames"),
        "retransmitted_packets": sum(flow.resent for flow in flows),
        "credit_updates": raw.total("tx_flow_control"),
        "pfc_storms": raw.total("watchdog_detected"),
        "credit_wait_ns": raw.total("xmit_wait") // 1000,
        "paused_ns": raw.total("rx_pause_duration") // 1000,
    }


def _lossless(spec: Spec, port: Port) -> list[bool]:
    """Whether each priority is."""
    pfc = spec.port(port).pfc
    lossless = pfc.priorities if pfc else ()
    return [priority in lossless for priority in PRIORITIES]


def _series(
    observations: Sequence[Observation], flows: Sequence[str], timeline: Timeline, slowdown: float
) -> Series:
    """All samples on the time grid of the first; what only grows is interpolated onto it.

    How late frames were is of all processes together, in emulated time.
    """
    views = [seen.samples for seen in observations]
    worst = np.trim_zeros(timeline.late_ns, "b")
    timings = [seen.timing for seen in observations if seen.timing]
    grid = views[0].time_ns
    with_flows = next((view for view in views if view.flow_bytes.shape[1]), views[0])

    def joined(quantity: str) -> NDArray[np.int64]:
        parts = [_onto(grid, view.time_ns, getattr(view, quantity)) for view in views]
        return np.hstack(parts) if len(parts) > 1 else parts[0]

    return Series(
        time_ns=grid,
        ports=tuple(name for view in views for name in view.ports),
        queue_bytes=joined("queue_bytes"),
        buffer_bytes=joined("buffer_bytes"),
        tx_bytes=joined("tx_bytes"),
        paused_ns=joined("paused_ns"),
        credit_wait_ns=joined("credit_wait_ns"),
        flows=tuple(flows),
        flow_bytes=_onto(grid, with_flows.time_ns, with_flows.flow_bytes),
        late_time_ns=_ends(len(worst), timeline, slowdown),
        late_ns=_emulated(worst, slowdown),
        **_late_histogram([own for timing in timings for own in timing.late], slowdown),
    )


def _machine(timeline: Timeline, cpu: CpuSamples, slowdown: float) -> MachineSeries:
    """What else there is over time, of all processes together."""
    happened = timeline.late_ns + timeline.kept_ns + timeline.lost.sum(axis=1)
    intervals = len(np.trim_zeros(happened, "b"))
    return MachineSeries(
        ledger_time_ns=_ends(intervals, timeline, slowdown),
        kept_ns=_emulated(timeline.kept_ns[:intervals], slowdown),
        losses=LOSSES,
        lost_frames=timeline.lost[:intervals],
        cpu_time_ns=_emulated(np.array(cpu.time_ns, np.int64), slowdown),
        cpu_users=tuple(cpu.seconds),
        cpu_ns=np.rint(1e9 * np.array([*cpu.seconds.values()]).T).astype(np.int64),
    )


def _late_histogram(
    histograms: Sequence[Histogram], slowdown: float
) -> dict[str, NDArray[np.int64]]:
    frames = sum(histograms, np.zeros(1, np.uint64)).astype(np.int64)
    (full,) = np.nonzero(frames)
    up_to_ns = np.array([bucket_value(int(bucket) + 1) - 1 for bucket in full], np.float64)
    return {
        "late_up_to_ns": _emulated(up_to_ns, slowdown),
        "late_frames": frames[full],
    }


def _emulated(wall_ns: NDArray[Any], slowdown: float) -> NDArray[np.int64]:
    return np.rint(wall_ns / slowdown).astype(np.int64)


def _ends(intervals: int, timeline: Timeline, slowdown: float) -> NDArray[np.int64]:
    return _emulated(np.arange(1, intervals + 1) * timeline.interval_ns, slowdown)


def _onto(
    grid: NDArray[np.int64], times: NDArray[np.int64], values: NDArray[np.int64]
) -> NDArray[np.int64]:
    if not values.shape[1]:
        return np.zeros((len(grid), 0), np.int64)
    if np.array_equal(grid, times):
        return values
    columns = [np.interp(grid, times, column) for column in values.T]
    return np.stack(columns, axis=1).astype(np.int64)


def _sampling_note(spec: Spec, time_ns: NDArray[np.int64]) -> tuple[str, ...]:
    """Where there was no memory for as many samples as the spec asks for."""
    asked_ps = spec.sample_interval_ps
    took_ns = int(np.diff(time_ns[:2]).sum())
    if asked_ps is None or 1000 * took_ns <= asked_ps:
        return ()
    return (
        f"samples are {write_time(1000 * took_ns)} apart, not {write_time(asked_ps)} as "
        "sample_interval asks: there was no memory for more",
    )


def _path_notes(spec: Spec) -> tuple[str, ...]:
    """What the ways between NICs and memory cost, each kind once, with the hosts that have it."""
    hosts: dict[str, list[str]] = {}
    for host in spec.topology.build().host:
        path = spec.host(host).path
        if path is not None:
            hosts.setdefault(str(path), []).append(host)
    return tuple(f"{', '.join(names)}: {cost}" for cost, names in hosts.items())
