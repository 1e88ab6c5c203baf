"""Flows that stood still until their retransmission timer fired, or the run was over.

When the last packets of a message are lost, the receiver misses nothing and sends no NAK. Only the
sender's timer notices: 4.096 us * 2^timeout after the last answer (IBTA vol 1, 9.7.6.1.3).
"""

from __future__ import annotations

import numpy as np

from emu.measure.recording import FlowRecord
from emu.report.facts import RunFacts
from emu.units import PS_PER_NS, ack_timeout_ps, format_time_ns

NEARLY = 0.9
"""Part of its timer for which nothing of a flow came in: the timer ended that."""
OF_THE_RUN = 0.2
"""Part of the run for which nothing of an unfinished flow came in at its end."""


def timer_waits(run: RunFacts) -> str:
    """A clause of how many flows waited, how long and for which timer; empty where none did."""
    waits = {flow: ns for flow in run.flows if (ns := _waited_ns(run, flow))}
    if not waits:
        return ""
    flow, longest_ns = max(waits.items(), key=lambda one: one[1])
    code = run.spec.host(flow.src).nic.timeout
    waited = "1 flow" if len(waits) == 1 else f"{len(waits):,} flows"
    return (
        f"; {waited} stood still until the retransmission timer or the end of the run, "
        f"{format_time_ns(longest_ns)} at most: the timer is {format_time_ns(_timer_ns(code))} "
        f"(hosts.nic.timeout: {code}), and a lower one waits less"
    )


def _timer_ns(code: int) -> int:
    return ack_timeout_ps(code) // PS_PER_NS


def _waited_ns(run: RunFacts, flow: FlowRecord) -> int:
    """The longest time in which nothing came in, if only the timer could end it; else 0."""
    series, timer_ns = run.recording.series, _timer_ns(run.spec.host(flow.src).nic.timeout)
    if flow.name not in series.flows or not len(series.time_ns):
        return 0
    delivered = series.flow_bytes[:, series.flows.index(flow.name)]
    grew_ns = series.time_ns[1:][np.diff(delivered) > 0]
    end_ns = int(series.time_ns[-1]) if flow.end_ns is None else flow.end_ns
    gaps_ns = np.diff(np.array([flow.start_ns, *grew_ns, max(end_ns, flow.start_ns)]))
    fired = run.recording.hosts.get(flow.src, {}).get("local_ack_timeout_err", 0)
    if fired and flow.retransmitted_packets and int(gaps_ns.max()) >= NEARLY * timer_ns:
        return int(gaps_ns.max())
    start, end = run.window_ns
    stands = not flow.completed and timer_ns > gaps_ns[-1] >= OF_THE_RUN * (end - start)
    return int(gaps_ns[-1]) if stands else 0
