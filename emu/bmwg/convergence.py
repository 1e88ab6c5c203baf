"""Congestion-control convergence: how long until flows that share a link have fair shares of it.

    M flows ├──────────────────────────────────
    M more         ├───────────────────────────      all within 10 % of the fair share
                   ├── convergence ──┤               (training draft)
                                     ├ window ┤ ...  and so in every later window

It is measured for each host that receives several flows: from the start of the last of them to the
start of the first window from which on the rate of every flow is within 10 % of the fair share.
Later windows count, as flows that all start at once have equal shares of the first queue before any
control acts. The end of the first flow ends the measurement, because the share changes then.

    fair share   payload rate of the receiver's link / number of flows
    window       the time of 40 packets at the fair share, so that one packet is 2.5 % of a rate

Rates are those of delivered bytes, from the samples of the run. The links before the receiver's may
be slower, or the senders may have other flows; then the fair share may be out of reach, and there
is no figure. There is none either where rates keep swinging by more than 10 %, as DCQCN's may. The
inference draft's other criterion, 5 % around the steady state, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emu.bmwg.jct import rate_of_host
from emu.bmwg.kpi import TRAIN, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.measure.bound import overhead_of
from emu.measure.records import FlowRecord
from emu.report.run_view import RunFacts
from emu.units import format_rate, format_time_ns
from emu.words import counted

WITHIN = 0.10
"""The part of the fair share by which a rate may differ."""
PACKETS = 40
"""Packets of a flow in a window at the fair share."""

CONVERGENCE = Kpi(
    "convergence",
    "congestion-control convergence",
    Table.SECONDARY,
    Unit.NS,
    "From the start of the last of a receiver's flows until all their rates are, and stay, within "
    "10 % of the fair share.",
    TRAIN,
)
KPIS = (CONVERGENCE,)


@dataclass(frozen=True)
class Shared:
    """Flows that share a receiver's link."""

    receiver: str
    flows: tuple[FlowRecord, ...]
    fair_bps: float
    window_ns: int
    start_ns: int
    """When the last flow started."""
    end_ns: int
    """When the first flow ended."""

    @property
    def in_words(self) -> str:
        first = sum(flow.start_ns < self.start_ns for flow in self.flows)
        joined = f", {len(self.flows) - first} of them join {first}" if first else ""
        return (
            f"{counted(len(self.flows), 'flow')}{joined}, fair share "
            f"{format_rate(self.fair_bps)}, window {format_time_ns(self.window_ns)}"
        )


def measured(trial: Trial) -> Measured:
    """The convergence at each receiver of several flows."""
    run = trial.run
    receivers = _receivers(run)
    if not receivers:
        yield Undefined(CONVERGENCE, "no host receives several flows that always have data")
    for receiver, flows in receivers.items():
        why_not = _why_not(run, flows)
        if why_not:
            yield Undefined(CONVERGENCE, why_not, receiver)
        else:
            yield _converged(run, _shared(run, receiver, flows))


def _receivers(run: RunFacts) -> dict[str, tuple[FlowRecord, ...]]:
    """Host -> all flows that it receives, if several of them always have data."""
    to: dict[str, list[FlowRecord]] = {}
    for flow in run.flows:
        to.setdefault(flow.bytes_to, []).append(flow)
    return {
        host: tuple(flows)
        for host, flows in to.items()
        if sum(map(run.sends_without_gaps, flows)) > 1
    }


def _why_not(run: RunFacts, flows: Sequence[FlowRecord]) -> str:
    """Why there is no fair share to reach; empty if there is one."""
    if not all(map(run.sends_without_gaps, flows)):
        return "it also receives flows that have gaps"
    if len({run.priority_of(flow) for flow in flows}) > 1:
        return "its flows have several priorities, whose shares are a setting"
    if not all(flow.name in run.sampled_flows for flow in flows):
        return "the run has no samples of these flows"
    return ""


def _shared(run: RunFacts, receiver: str, flows: tuple[FlowRecord, ...]) -> Shared:
    mtu_bytes = min(run.spec.host(flow.bytes_from).nic.mtu for flow in flows)
    packet_bytes = mtu_bytes + overhead_of(run.spec, run.topology).each
    fair_bps = rate_of_host(run, receiver) * mtu_bytes / packet_bytes / len(flows)
    ends = [flow.end_ns for flow in flows if flow.end_ns is not None]
    return Shared(
        receiver,
        flows,
        fair_bps,
        window_ns=round(PACKETS * mtu_bytes * 8e9 / fair_bps),
        start_ns=max(flow.start_ns for flow in flows),
        end_ns=min(ends, default=run.window_ns[1]),
    )


def _converged(run: RunFacts, shared: Shared) -> Figure | Undefined:
    together_ns = shared.end_ns - shared.start_ns
    if together_ns < 2 * shared.window_ns:
        reason = f"the flows are together for {format_time_ns(max(0, together_ns))}"
        few = f"{reason}, less than two windows of {format_time_ns(shared.window_ns)}"
        return Undefined(CONVERGENCE, few, shared.receiver)
    series = run.recording.series
    columns = [run.sampled_flows[flow.name] for flow in shared.flows]
    times, furthest = distance_from(
        shared.fair_bps,
        series.time_ns,
        series.flow_bytes[:, columns],
        (shared.start_ns, shared.end_ns),
        shared.window_ns,
    )
    since = stable_since(times, furthest)
    if since is not None:
        took_ns = max(0, since - shared.window_ns - shared.start_ns)
        return Figure(CONVERGENCE, took_ns, shared.receiver, shared.in_words)
    away = f"the furthest flow was {float(np.median(furthest)):.0%} away in the median window"
    return Undefined(CONVERGENCE, f"not reached: {away} ({shared.in_words})", shared.receiver)


def stable_since(
    times: NDArray[np.int64], furthest: NDArray[np.float64], within: float = WITHIN
) -> int | None:
    """The first of these times from which on the furthest flow is within this part of the fair
    share; None if it is not at the last one."""
    outside = np.flatnonzero(furthest > within)
    first = int(outside[-1]) + 1 if len(outside) else 0
    return int(times[first]) if first < len(times) else None


def distance_from(
    fair_bps: float,
    time_ns: NDArray[np.int64],
    delivered: NDArray[np.int64],
    span_ns: tuple[int, int],
    window_ns: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For each sample at which a whole window within the span ends: its time, and how far the rate
    of the furthest flow is from the fair share, as a part of it.

    `delivered`: (n, f) bytes so far. Between samples, bytes are taken to come evenly.
    """
    start_ns, end_ns = span_ns
    ends = np.flatnonzero((time_ns >= start_ns + window_ns) & (time_ns <= end_ns))
    before = time_ns[ends] - window_ns
    grown = np.column_stack(
        [own[ends] - np.interp(before, time_ns, own) for own in delivered.T.astype(np.float64)]
    )
    away = np.abs(grown * 8e9 / window_ns / fair_bps - 1)
    return time_ns[ends], away.max(axis=1, initial=0.0)
