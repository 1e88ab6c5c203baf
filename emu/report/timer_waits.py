"""Flows that stood still until their retransmission timer fired, or until the run ended.

When the last packets of a message are lost, the receiver sees no gap and sends no NAK. Only the
sender's timer detects the loss: 4.096 us * 2^timeout after the last answer (IBTA vol 1,
9.7.6.1.3).

Only flows that always have something to send are examined, because paced traffic, storage and jobs
have gaps by themselves. Flows of priorities without losses, and flows whose queue pair failed, are
left out.
"""

from __future__ import annotations

import numpy as np

from emu.measure.counters import PRIORITIES
from emu.measure.records import FlowRecord
from emu.report.early_timers import resent_without_loss
from emu.report.run_view import RunFacts
from emu.spec.diagnostic import dotted
from emu.spec.rules.provenance import for_host
from emu.units import PS_PER_NS, ack_timeout_ps, format_time_ns

NEARLY = 0.9
"""If nothing of a flow arrived for this part of its timer, the timer ended the gap."""
OF_THE_RUN = 0.2
"""The part of the run, at its end, for which nothing of an unfinished flow must have arrived."""


def timer_waits(run: RunFacts) -> str:
    """A clause about how many flows waited, how long and for which timer; empty if none did."""
    lossy = _lossy_priorities(run)
    waits = {
        flow: ns
        for flow in run.flows
        if run.sends_without_gaps(flow)
        and flow.name not in run.gave_up
        and run.priority_of(flow) in lossy
        and (ns := _waited_ns(run, flow))
    }
    if not waits:
        return ""
    flow, longest_ns = max(waits.items(), key=lambda one: one[1])
    code = run.spec.host(flow.src).nic.timeout
    others = len(waits) - 1
    more = f" and {others:,} more flow{'s' if others > 1 else ''}" if others else ""
    return (
        f"; {flow.name}{more} stood still until the retransmission timer fired or the run ended, "
        f"for at most {format_time_ns(longest_ns)}: the timer is {format_time_ns(_timer_ns(code))} "
        f"({dotted(for_host(run.spec, flow.src, 'nic', 'timeout'))}: {code})"
        f"{'' if resent_without_loss(run) else '; a shorter timer would reduce the wait'}"
    )


def _timer_ns(code: int) -> int:
    return ack_timeout_ps(code) // PS_PER_NS


def _lossy_priorities(run: RunFacts) -> set[int]:
    """Priorities of which switches dropped, or faults lost, packets."""
    return {
        priority
        for priority in PRIORITIES
        for own in run.recording.ports.values()
        if own.get(f"tx_prio{priority}_discards") or own.get(f"prio{priority}_dropped_packets")
    }


def _waited_ns(run: RunFacts, flow: FlowRecord) -> int:
    """The longest time in which nothing of the flow arrived, if only the timer could end it; else
    0."""
    series, timer_ns = run.recording.series, _timer_ns(run.spec.host(flow.src).nic.timeout)
    fired = run.recording.hosts.get(flow.src, {}).get("local_ack_timeout_err", 0)
    has_fired = bool(fired and flow.retransmitted_packets)
    if flow.name not in run.sampled_flows:
        return 0
    if flow.completed and not has_fired:
        return 0
    delivered = series.flow_bytes[:, run.sampled_flows[flow.name]]
    grew_ns = series.time_ns[1:][np.diff(delivered) > 0]
    end_ns = int(series.time_ns[-1]) if flow.end_ns is None else flow.end_ns
    gaps_ns = np.diff(np.array([flow.start_ns, *grew_ns, max(end_ns, flow.start_ns)]))
    if has_fired and int(gaps_ns.max()) >= NEARLY * timer_ns:
        return int(gaps_ns.max())
    start, end = run.window_ns
    stands = not flow.completed and timer_ns > gaps_ns[-1] >= OF_THE_RUN * (end - start)
    return int(gaps_ns[-1]) if stands else 0
