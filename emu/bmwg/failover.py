"""Failover: what a lost link costs (training draft, link failure convergence).

    link lost         routes changed             delivered again
        ├─ redistribute ──┤                            │
        ├─ packets lost ──┤                            │
     ├───────────── outage of a flow ──────────────────┤

    packets lost            packets that the fault dropped
    time to redistribute    from the loss of the link until the last switch has changed its routes
    loss duration           from the loss of the link until no packet goes to it any more: routes
                            have changed, or the link is back
    flow outage             the longest time without delivery of a flow that lost packets, around
                            the end of the loss: it includes recovery, and waiting on other links
    JCT overhead            the completion with the fault, less that of the same run without it; of
                            the last flow where an entry is no job

Of a fault that takes links away several times, the first time counts. On RoCE the time to
redistribute is that of the last switch which BGP tells; with static routes it is a setting,
`switches.routing.convergence`. On InfiniBand it is that of the subnet manager's sweep, which the
run records. The drafts have no flow outage. It comes from samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emu.bmwg.kpi import OF_EMU, TRAIN, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.trial import Trial, works
from emu.measure.records import FlowRecord
from emu.report.run_view import RunFacts, last_finish_ns
from emu.spec.fault import Fault, fault_names
from emu.spec.fault.kind import LostLinks
from emu.spec.outages import Rerouting, times_down
from emu.spec.rerouting import reroutings
from emu.spec.scenario import Spec
from emu.units import PS_PER_NS, format_time_ns
from emu.words import counted, listed


def _kpi(key: str, name: str, unit: Unit, definition: str) -> Kpi:
    return Kpi(key, name, Table.FAILOVER, unit, definition, TRAIN)


LOST = _kpi("packets_lost", "packets lost", Unit.COUNT, "Packets that the fault dropped.")
REDISTRIBUTED = _kpi(
    "time_to_redistribute",
    "time to redistribute",
    Unit.NS,
    "From the loss of the link until the last switch has changed its routes.",
)
DURATION = _kpi(
    "loss_duration",
    "loss duration",
    Unit.NS,
    "From the loss of the link until no packet goes to it any more; 0 if no packet was lost.",
)
OUTAGE = Kpi(
    "flow_outage",
    "flow outage",
    Table.FAILOVER,
    Unit.NS,
    "The longest time without delivery of a flow that lost packets, around the end of the loss.",
    OF_EMU,
)
OVERHEAD = _kpi(
    "failover_jct_overhead",
    "JCT overhead of the failure",
    Unit.NS,
    "Completion with the fault, less completion of the same run without it.",
)
KPIS = (LOST, REDISTRIBUTED, DURATION, OUTAGE, OVERHEAD)


@dataclass(frozen=True)
class Outage:
    """The first time that a fault takes links away."""

    name: str
    fault: Fault
    at_ns: int
    back_ns: int
    """When the links are back, or the end of the run."""
    changes: tuple[Rerouting, ...]
    """The changes of routes that it causes."""
    leaves: frozenset[str]
    """The switches with hosts."""

    @property
    def cut_off(self) -> list[str]:
        """Hosts that other hosts have no other path to."""
        hops = {
            (change.switch, host): ports
            for change in self.changes
            if change.switch in self.leaves
            for host, ports in change.changes.items()
        }
        return sorted({host for (_, host), ports in hops.items() if not ports})


def lost_links(spec: Spec) -> dict[str, Fault]:
    """The faults of a spec that take links away, by name."""
    named = zip(fault_names(spec.faults), spec.faults, strict=True)
    return {name: fault for name, fault in named if isinstance(fault.what, LostLinks)}


def measured(trial: Trial) -> Measured:
    """The figures of each fault that took links away during the trial."""
    faults = lost_links(trial.run.spec)
    if not faults:
        reason = "the spec has no fault that takes a link away (faults: link-down)"
        yield from (Undefined(kpi, reason) for kpi in KPIS)
        return
    for name, fault in faults.items():
        outage = outage_of(trial.run.spec, name, fault)
        if outage.at_ns >= trial.window_ns[1]:
            reason = "the traffic ended before the link was lost"
            yield from (Undefined(kpi, reason, name) for kpi in KPIS[:-1])
            continue
        yield from _of_outage(trial.run, outage)
    yield from _overheads(trial)


def outage_of(spec: Spec, name: str, fault: Fault) -> Outage:
    """The outage that a fault of this name causes."""
    begin_ps, end_ps = next(times_down(fault, spec.time_limit_ps), (fault.at_ps, fault.at_ps))
    own = tuple(change for change in reroutings(spec) if change.cause_ps == begin_ps)
    leaves = frozenset(spec.topology.build().leaves)
    return Outage(name, fault, begin_ps // PS_PER_NS, end_ps // PS_PER_NS, own, leaves)


def _of_outage(run: RunFacts, outage: Outage) -> Measured:
    lost = sum(f.packets_dropped for f in run.recording.faults if f.name == outage.name)
    changed_ns = _routes_changed_ns(run, outage)
    yield Figure(LOST, lost, outage.name, _lost_without_route(run))
    if changed_ns is None:
        yield Undefined(REDISTRIBUTED, _why_not_rerouted(outage), outage.name)
    else:
        yield Figure(REDISTRIBUTED, changed_ns - outage.at_ns, outage.name, _how_rerouted(run))
    yield _loss_duration(outage, lost, changed_ns)
    yield _flow_outage(run, outage, lost, changed_ns)


def _routes_changed_ns(run: RunFacts, outage: Outage) -> int | None:
    """When the last switch had changed its routes; None: traffic had no other path."""
    swept = [s.in_force_ns for s in run.recording.sweeps if s.at_ns == outage.at_ns]
    changed = [change.at_ps // PS_PER_NS for change in outage.changes]
    return None if outage.cut_off else max(swept or changed, default=None)


def _lost_without_route(run: RunFacts) -> str:
    """The packets that reached a switch after it had lost its route: BGP tells the switches before
    it of the loss only later."""
    dropped = sum(counters.get("no_route", 0) for counters in run.recording.ports.values())
    if not dropped:
        return ""
    return f"switches without a route dropped {dropped:,} more in the run"


def _how_rerouted(run: RunFacts) -> str:
    if run.recording.sweeps:
        return "sweep of the subnet manager"
    return "BGP" if run.spec.has_bgp else "routing.convergence"


def _why_not_rerouted(outage: Outage) -> str:
    if outage.cut_off:
        return f"{listed(outage.cut_off, 4)} had no other path"
    return "no switch had another path"


def _loss_duration(outage: Outage, lost: int, changed_ns: int | None) -> Figure | Undefined:
    if not lost:
        return Figure(DURATION, 0, outage.name, "no packet was lost")
    if changed_ns is None:
        return Undefined(DURATION, _why_not_rerouted(outage), outage.name)
    ended = "routes changed" if changed_ns <= outage.back_ns else "the link was back"
    took_ns = min(changed_ns, outage.back_ns) - outage.at_ns
    return Figure(DURATION, took_ns, outage.name, f"until {ended}")


def _flow_outage(
    run: RunFacts, outage: Outage, lost: int, changed_ns: int | None
) -> Figure | Undefined:
    if not lost:
        return Figure(OUTAGE, 0, outage.name, "no packet was lost")
    hit = [
        flow
        for flow in run.flows
        if flow.resent and flow.start_ns <= outage.at_ns and flow.name in run.sampled_flows
    ]
    ended_ns = outage.back_ns if changed_ns is None else min(changed_ns, outage.back_ns)
    gaps = {flow.name: _gap_ns(run, flow, ended_ns) for flow in hit}
    dead = [name for name, gap_ns in gaps.items() if gap_ns is None]
    if dead or not hit:
        reason = f"{listed(dead, 4)} delivered nothing more" if dead else "no flow sent them again"
        return Undefined(OUTAGE, reason, outage.name)
    longest = max(gaps, key=lambda name: gaps[name] or 0)
    found = f"{longest}, of {counted(len(hit), 'flow')} that sent packets again; samples "
    detail = f"{found}{_between_samples(run)} apart"
    return Figure(OUTAGE, gaps[longest] or 0, outage.name, detail)


def _gap_ns(run: RunFacts, flow: FlowRecord, at_ns: int) -> int | None:
    """The time without delivery of a flow that includes an instant; None: it did not end. 0 if the
    flow had delivered everything."""
    if flow.end_ns is not None and flow.end_ns <= at_ns:
        return 0
    series = run.recording.series
    delivered = series.flow_bytes[:, run.sampled_flows[flow.name]]
    grew_ns = series.time_ns[1:][np.diff(delivered) > 0]
    later = grew_ns[grew_ns > at_ns]
    if not len(later):
        return None
    earlier = grew_ns[grew_ns <= at_ns]
    return int(later[0] - (earlier[-1] if len(earlier) else flow.start_ns))


def _between_samples(run: RunFacts) -> str:
    return format_time_ns(int(np.diff(run.recording.series.time_ns[:2]).sum()))


def _overheads(trial: Trial) -> Measured:
    """How much later each entry completed than without the fault."""
    healthy = trial.without_faults
    if healthy is None:
        yield Undefined(OVERHEAD, "the run without the fault was not done")
        return
    for name in trial.run.entries:
        late_ns, usual_ns = _completion_ns(trial.run, name), _completion_ns(healthy, name)
        if late_ns is None or usual_ns is None:
            yield Undefined(OVERHEAD, "it did not finish", name)
        else:
            inputs = f"{format_time_ns(usual_ns)} without the fault, {late_ns / usual_ns - 1:+.1%}"
            yield Figure(OVERHEAD, late_ns - usual_ns, name, inputs)


def _completion_ns(run: RunFacts, name: str) -> int | None:
    """The JCT of an entry; of an entry that is no job, from its start to its last completion."""
    for work in works(run):
        if work.name == name:
            return work.took_ns
    flows = run.traffic.get(name, ())
    end_ns = last_finish_ns(flows)
    return None if end_ns is None else end_ns - min(flow.start_ns for flow in flows)
