"""Flows that congestion control keeps slow long after the congestion has ended.

    rate  ─┐  last queue that marks
           │  │                          the path is free, and the flow does not use it
           └──┴──▁▁▁▁▁▂▂▂▂▂▃▃▃▃▃────────────▶ time

A packet is marked only in a queue above Kmin, so the samples of queues show when marking ended.
DCQCN adds R_AI to a flow's target rate once per increase timer: 40 Mbit/s every 55 us in its paper,
which assumes links of 40 Gbit/s. InfiniBand's CCT index falls by one entry per CCTI timer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from emu.measure.binning import growth
from emu.measure.records import FlowRecord
from emu.report import fixes
from emu.report.detectors import STANDING, Finding
from emu.report.run_view import RunFacts
from emu.report.senders import round_trip_ns
from emu.spec.congestion_control.cct import Cct
from emu.spec.congestion_control.dcqcn import Dcqcn
from emu.spec.diagnostic import dotted
from emu.spec.rules.provenance import for_host
from emu.spec.traffic.entry import MessageEntry
from emu.spec.traffic.random_traffic import Background
from emu.units import format_rate, format_time_ns, write_rate, write_time
from emu.words import counted
from topologies.graph import Port
from traffic.verb import Verb

MOST = 0.5
"""The least part of a flow's life that must come after the last marks."""
FAR_BELOW = 0.25
"""A flow is held back if it takes less than this part of its path's free rate."""
_CCTI_TIMER_OF_NVIDIA, _CCTI_TIMER_NS = 10, 1024


@dataclass(frozen=True)
class _Held:
    flow: FlowRecord
    sender: str
    since_ns: int
    """The flow has had enough to send since this time, and no queue on its path could mark."""
    for_ns: int
    rate_bps: float
    free_bps: float


def held_by_control(run: RunFacts) -> Finding | None:
    held = list(_held(run))
    if not held:
        return None
    worst = max(held, key=lambda own: own.for_ns)
    cc = run.spec.host(worst.sender).nic.cc
    others = len(held) - 1
    more = f"; the same holds for {counted(others, 'more flow')}" if others else ""
    evidence = (
        f"{worst.flow.name} had {format_rate(worst.rate_bps)} for {format_time_ns(worst.for_ns)}, "
        f"though its path had {format_rate(worst.free_bps)} free, and no queue there was deep "
        f"enough to mark after {format_time_ns(worst.since_ns)}: "
        f"{_how_slow(run, worst.sender)}{more}"
    )
    senders = dict.fromkeys(own.sender for own in held if run.spec.host(own.sender).nic.cc == cc)
    return Finding(evidence, _cure(run, list(senders), cc))


def _how_slow(run: RunFacts, sender: str) -> str:
    nic = run.spec.host(sender).nic
    if nic.cc == "cct":
        timer = format_time_ns(nic.parameters_of(Cct).ccti_timer * _CCTI_TIMER_NS)
        return f"cc: cct lowers its table index by one per {timer} (ccti_timer)"
    dcqcn = nic.parameters_of(Dcqcn)
    rai, timer = write_rate(dcqcn.rai_bps), write_time(dcqcn.increase_timer_ps)
    return f"cc: dcqcn adds {rai} (rai) per {timer} (increase_timer)"


def _cure(run: RunFacts, senders: list[str], cc: str) -> fixes.Settings:
    """A faster congestion control, or a shorter timer, at all senders with the slow one."""
    if cc == "cct":
        timers = {
            dotted(for_host(run.spec, host, "nic", "cct", "ccti_timer")): _shorter_timer(run, host)
            for host in senders
        }
        return tuple(f"{key}={timer}" for key, timer in timers.items())
    keys = (dotted(for_host(run.spec, host, "nic", "cc")) for host in senders)
    return tuple(dict.fromkeys(f"{key}=dcqcn-nvidia" for key in keys))


def _shorter_timer(run: RunFacts, host: str) -> int:
    timer = run.spec.host(host).nic.parameters_of(Cct).ccti_timer
    return min(_CCTI_TIMER_OF_NVIDIA, max(1, timer // 10))


def _held(run: RunFacts) -> Iterator[_Held]:
    series, last_marks_ns = run.recording.series, _last_marks_ns(run)
    if not len(series.time_ns):
        return
    start, end = run.window_ns
    for flow in run.flows:
        sends_ns = _sends_ns(run, flow)
        if sends_ns is None or not _slowed(run, flow.bytes_from):
            continue
        if flow.retransmitted_packets or flow.name not in run.sampled_flows:
            continue
        path = run.columns(chain(*run.paths.stages(flow.bytes_from, flow.bytes_to)))
        if not path:
            continue
        since_ns = max(sends_ns, int(last_marks_ns[path].max()))
        end_ns = flow.end_ns or int(series.time_ns[-1])
        for_ns = end_ns - since_ns
        if for_ns < max(MOST * (end_ns - flow.start_ns), STANDING * (end - start), 1):
            continue
        place = run.sampled_flows[flow.name]
        (sent,) = growth(series.time_ns, series.flow_bytes, since_ns, end_ns, [place])
        free_bps = _free_bps(run, path, since_ns, end_ns)
        rate_bps = float(sent) * 8e9 / for_ns
        could_ns = _least_ns(run, flow, float(sent))
        if rate_bps < FAR_BELOW * free_bps and could_ns < FAR_BELOW * for_ns:
            yield _Held(flow, flow.bytes_from, since_ns, for_ns, rate_bps, free_bps)


def _sends_ns(run: RunFacts, flow: FlowRecord) -> int | None:
    """The time from which a flow has something to send until it ends; None if that is unknown. In
    an open-loop load, it is the time at which the last message arrives."""
    if run.sends_without_gaps(flow):
        return flow.start_ns
    if not isinstance(run.entries.get(flow.traffic), Background) or not flow.is_rdma:
        return None
    requests = run.recording.requests
    if flow.traffic not in requests.traffic:
        return None
    own = requests.of == requests.traffic.index(flow.traffic)
    return max(flow.start_ns, int(requests.start_ns[own].max(initial=0)))


def _least_ns(run: RunFacts, flow: FlowRecord, sent_bytes: float) -> float:
    """The least time for so many bytes if each message waits for the one before it."""
    entry = run.entries[flow.traffic]
    if not isinstance(entry, MessageEntry):
        return 0
    alone_ns = round_trip_ns(run.paths, flow.src, flow.dst, Verb(flow.op), entry.size_bytes)
    return sent_bytes / entry.size_bytes * alone_ns


def _slowed(run: RunFacts, sender: str) -> bool:
    """Whether congestion feedback reached the sender, and nothing but its congestion control limits
    its rate."""
    host, counters = run.spec.host(sender), run.recording.hosts.get(sender, {})
    notified = counters.get("rp_cnp_handled", 0) + counters.get("rp_becn_received", 0)
    return host.nic.cc in ("dcqcn", "cct") and notified > 0 and host.path is None


def _last_marks_ns(run: RunFacts) -> NDArray[np.int64]:
    """For each sampled port: the time of the last sample with a queue deep enough to mark; 0 if
    there is none."""
    series = run.recording.series
    peaks = series.queue_bytes.max(axis=0, initial=0)
    last_ns = np.zeros(len(series.ports), np.int64)
    for column in np.flatnonzero(peaks):
        port = run.topology.port_named[series.ports[column]]
        if port.node in run.topology.switch and peaks[column] > _marks_above(run, port):
            deep = np.flatnonzero(series.queue_bytes[:, column] > _marks_above(run, port))
            last_ns[column] = series.time_ns[deep[-1]]
    return last_ns


def _marks_above(run: RunFacts, port: Port) -> int:
    """The depth in bytes below which a queue marks nothing. InfiniBand packets may wait in the
    buffers of several lanes, so two packets count as deep enough."""
    if run.uses_credits:
        return 2 * run.spec.largest_frame_bytes
    ecn = run.spec.port(port).ecn
    return ecn.kmin_bytes if ecn else 2 * run.spec.largest_frame_bytes


def _free_bps(run: RunFacts, path: list[int], start_ns: int, end_ns: int) -> float:
    """The free rate of the fullest cable among these columns; 0 where flow control held one of
    them back."""
    series, topology = run.recording.series, run.topology
    waited = run.waited_ns(path, start_ns, end_ns)
    if waited.max() >= STANDING * (end_ns - start_ns):
        return 0
    sent = growth(series.time_ns, series.tx_bytes, start_ns, end_ns, path)
    ports = [topology.port_named[series.ports[column]] for column in path]
    rates = np.array([topology.cable[port].rate_bps for port in ports])
    return float((rates - sent * 8e9 / (end_ns - start_ns)).min())
