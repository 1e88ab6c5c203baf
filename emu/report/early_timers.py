"""Retransmission timers that fire although nothing was lost, so that receivers get duplicates.

    sender    ├─ message ─┤ · · · · timer ├─ the same again ─┤ ...
    switch                 queues, pauses
    receiver                                 ├─ message ─┤  ├─ duplicates ─┤

A flow counts if no switch dropped a packet of its priority, and if nothing else in the run can
have lost its packets.
"""

from __future__ import annotations

from emu.fabric_kind import Framing
from emu.measure.counter_table import CONGESTION, PORT, with_number
from emu.measure.counters import PRIORITIES
from emu.measure.records import FlowRecord
from emu.report.run_view import RunFacts


def resent_without_loss(run: RunFacts) -> list[FlowRecord]:
    """Flows whose sender's timer fired, and that sent packets again which were not lost."""
    fired = [flow for flow in run.flows if flow.retransmitted_packets and _has_fired(run, flow)]
    lost = _lossy_priorities(run) if fired else None
    if lost is None:
        return []
    return [flow for flow in fired if not lost or run.priority_of(flow) not in lost]


def _has_fired(run: RunFacts, flow: FlowRecord) -> bool:
    fired = run.recording.hosts.get(flow.src, {}).get("local_ack_timeout_err", 0)
    return flow.is_rdma and fired > 0


def _lossy_priorities(run: RunFacts) -> set[int] | None:
    """Priorities of which switches dropped packets. None when packets of any flow may have been
    lost."""
    ports = run.recording.ports.values()
    names = PORT.public_drops(Framing.ETHERNET, PORT.drops(CONGESTION))
    lost = {
        priority: sum(own.get(with_number(name, priority), 0) for own in ports for name in names)
        for priority in PRIORITIES
    }
    unknown = run.drops - sum(lost.values()) + run.dropped_by_faults + run.dropped_by_hosts
    on = {run.priority_of(flow) for flow in run.flows} if any(lost.values()) else set()
    lossy = {priority for priority, count in lost.items() if count}
    return None if unknown or lossy - on else lossy
