"""Flows that their congestion control holds back long after the congestion is over.

    rate  ─┐  last queue that marks
           │  │                          the path is free, and the flow does not use it
           └──┴──▁▁▁▁▁▂▂▂▂▂▃▃▃▃▃────────────▶ time

A packet is marked only in a queue above Kmin, so the samples tell when marks came last. DCQCN adds
R_AI to a flow's target rate once in each increase timer: 40 Mbit/s every 55 us in its paper, whose
links have 40 Gbit/s. InfiniBand's table is left by one entry in each CCTI timer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from emu.measure.binning import growth
from emu.measure.bound import Ways, fabric_of, stages
from emu.measure.recording import FlowRecord
from emu.report import cures
from emu.report.facts import RunFacts, waiting_ns
from emu.report.senders import there_and_back_ns
from emu.report.signatures import STANDING, Finding
from emu.spec.finding import dotted
from emu.spec.rules.given import for_host
from emu.spec.traffic.entry import MessageEntry
from emu.units import format_rate, format_time_ns, write_rate, write_time
from topologies.graph import Port
from traffic.graph import Verb

MOST = 0.5
"""Part of its life that a flow must have had after the last marks."""
FAR_BELOW = 0.25
"""Part of what its path has free that a flow takes which is held back."""
_CCTI_TIMER_OF_NVIDIA, _CCTI_TIMER_NS = 10, 1024


@dataclass(frozen=True)
class _Held:
    flow: FlowRecord
    sender: str
    since_ns: int
    """When the last queue on its path was deep enough for marks."""
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
    more = f"; so it was with {others} more flow{'s' if others > 1 else ''}" if others else ""
    evidence = (
        f"{worst.flow.name} had {format_rate(worst.rate_bps)} for {format_time_ns(worst.for_ns)}, "
        f"though its path had {format_rate(worst.free_bps)} free, and no queue there was deep "
        f"enough to mark after {format_time_ns(worst.since_ns)}: {_how_slow(run, worst.sender)}"
        f"{more}"
    )
    senders = dict.fromkeys(own.sender for own in held if run.spec.host(own.sender).nic.cc == cc)
    return Finding(evidence, _cure(run, list(senders), cc))


def _how_slow(run: RunFacts, sender: str) -> str:
    nic = run.spec.host(sender).nic
    if nic.cc == "cct":
        timer = format_time_ns(nic.cct.ccti_timer * _CCTI_TIMER_NS)
        return f"cc: cct leaves one entry of its table in {timer} (ccti_timer)"
    rai, timer = write_rate(nic.dcqcn.rai_bps), write_time(nic.dcqcn.increase_timer_ps)
    return f"cc: dcqcn adds {rai} (rai) in {timer} (increase_timer)"


def _cure(run: RunFacts, senders: list[str], cc: str) -> cures.Settings:
    """A quicker control, or a shorter timer; at all senders that have the slow one."""
    if cc == "cct":
        timers = {
            dotted(for_host(run.spec, host, "nic", "cct", "ccti_timer")): (
                min(_CCTI_TIMER_OF_NVIDIA, max(1, run.spec.host(host).nic.cct.ccti_timer // 10))
            )
            for host in senders
        }
        return tuple(f"{key}={timer}" for key, timer in timers.items())
    keys = (dotted(for_host(run.spec, host, "nic", "cc")) for host in senders)
    return tuple(dict.fromkeys(f"{key}=dcqcn-nvidia" for key in keys))


def _held(run: RunFacts) -> Iterator[_Held]:
    series = run.recording.series
    entries = {entry.name: entry for entry in run.spec.traffic}
    ways = Ways(run.topology, fabric_of(run.spec, run.topology))
    for flow in run.flows:
        sender, receiver = (flow.dst, flow.src) if flow.op == Verb.READ else (flow.src, flow.dst)
        entry = entries.get(flow.traffic)
        if not isinstance(entry, MessageEntry) or entry.every_ps or not _slowed(run, sender):
            continue
        path = [port for hop in stages(run.topology, sender, receiver) for port in hop]
        if flow.retransmitted_packets or flow.name not in series.flows or not path:
            continue
        since_ns = max(flow.start_ns, _last_mark_ns(run, path))
        end_ns = flow.end_ns or int(series.time_ns[-1])
        for_ns = end_ns - since_ns
        start, end = run.window_ns
        if for_ns < max(MOST * (end_ns - flow.start_ns), STANDING * (end - start), 1):
            continue
        place = series.flows.index(flow.name)
        (sent,) = growth(series.time_ns, series.flow_bytes[:, [place]], since_ns, end_ns)
        alone_ns = there_and_back_ns(ways, flow.src, flow.dst, Verb(flow.op), entry.size_bytes)
        free_bps = _free_bps(run, path, since_ns, end_ns)
        rate_bps = float(sent) * 8e9 / for_ns
        could_ns = sent / entry.size_bytes * alone_ns
        if rate_bps < FAR_BELOW * free_bps and could_ns < FAR_BELOW * for_ns:
            yield _Held(flow, sender, since_ns, for_ns, rate_bps, free_bps)


def _slowed(run: RunFacts, sender: str) -> bool:
    """Whether it has heard of congestion, and nothing but its control makes it slow."""
    host, counters = run.spec.host(sender), run.recording.hosts.get(sender, {})
    heard = counters.get("rp_cnp_handled", 0) + counters.get("rp_becn_received", 0)
    return host.nic.cc in ("dcqcn", "cct") and heard > 0 and host.path is None


def _last_mark_ns(run: RunFacts, path: list[Port]) -> int:
    """When a queue on the path could mark for the last time; 0: at no time."""
    series, last_ns = run.recording.series, 0
    for port in path:
        if port.node in run.topology.switch and run.topology.port_name[port] in series.ports:
            queue = series.queue_bytes[:, series.ports.index(run.topology.port_name[port])]
            deep = np.flatnonzero(queue > _marks_above(run, port))
            last_ns = max(last_ns, int(series.time_ns[deep[-1]]) if len(deep) else 0)
    return last_ns


def _marks_above(run: RunFacts, port: Port) -> int:
    """Bytes below which a queue marks nothing. InfiniBand's may be in buffers of several lanes, so
    that two packets there are taken for enough."""
    if run.uses_credits:
        return 2 * run.spec.largest_frame_bytes
    ecn = run.spec.port(port).ecn
    return ecn.kmin_bytes if ecn else 2 * run.spec.largest_frame_bytes


def _free_bps(run: RunFacts, path: list[Port], start_ns: int, end_ns: int) -> float:
    """What the fullest cable that it may take had free; nothing where flow control held it."""
    series, names = run.recording.series, [run.topology.port_name[port] for port in path]
    if not set(names) <= set(series.ports):
        return 0
    places = [series.ports.index(name) for name in names]
    sent = growth(series.time_ns, series.tx_bytes[:, places], start_ns, end_ns)
    waited = growth(series.time_ns, waiting_ns(series)[:, places], start_ns, end_ns)
    if waited.max() >= STANDING * (end_ns - start_ns):
        return 0
    rates = np.array([run.topology.cable[port].rate_bps for port in path])
    return float((rates - sent * 8e9 / (end_ns - start_ns)).min())
