"""Detects pathologies in the figures of a run.

Each detector is a function from a run to a finding, or None. Thresholds are parts of
the run's time, because what lasts for a moment is no pathology.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from emu.measure.records import Counters, FailedQueuePair, FaultRecord, FlowRecord
from emu.report import fixes
from emu.report.early_timers import resent_without_loss
from emu.report.lossy_faults import blamed, is_for_good, lasts, lossy_faults
from emu.report.marks import has_cnps_for_paused_priorities, marked_where_paused
from emu.report.priority_maps import port_with_wrong_map
from emu.report.room import end_ns, has_full_cable_on_path, held_ns, life_ns, rate_bps, room
from emu.report.run_view import RunFacts
from emu.report.timer_waits import timer_waits
from emu.spec.classes import PRIORITIES
from emu.spec.derived import late_curves
from emu.spec.diagnostic import dotted
from emu.spec.fault import fault_names
from emu.spec.fault.kind import FaultKind
from emu.spec.fault.kinds.ignored_cnps import IgnoredCnps
from emu.spec.fault.kinds.pause_storm import PauseStorm
from emu.spec.fault.kinds.small_headroom import SmallHeadroom
from emu.spec.fault.kinds.wrong_ecn import WrongEcn
from emu.spec.fault.kinds.wrong_map import WrongMap
from emu.spec.routing import PACKET_KINDS
from emu.spec.rules.provenance import for_host
from emu.spec.scenario import Spec
from emu.spec.traffic.entry import MessageEntry
from emu.spec.traffic.patterns import PingPong
from emu.spec.traffic.random_traffic import Background
from emu.units import PS_PER_NS, ack_timeout_ps, format_rate, format_size, format_time_ns
from emu.words import counted, shortened
from topologies.graph import Port

STANDING = 0.2
"""Part of the run for which a port must be paused to count as held back."""
SHORT_TURNS = 2
"""More transitions from XOFF to XON than this are ordinary pauses, not one storm."""

RETRY_EXCEEDED = "IBV_WC_RETRY_EXC_ERR"
STATUSES = {
    RETRY_EXCEEDED: "transport retry counter exceeded",
    "IBV_WC_RNR_RETRY_EXC_ERR": "RNR retry counter exceeded",
    "IBV_WC_LOC_LEN_ERR": "local length error",
    "IBV_WC_LOC_QP_OP_ERR": "local QP operation error",
    "IBV_WC_LOC_PROT_ERR": "local protection error",
    "IBV_WC_REM_INV_REQ_ERR": "remote invalid request error",
    "IBV_WC_REM_ACCESS_ERR": "remote access error",
    "IBV_WC_REM_OP_ERR": "remote operation error",
}
"""The status of a completion, as ibv_wc_status_str prints it."""
_MOST_NAMED = 4

MANY_RESENT = 0.01
"""The least part of the packets that must be sent again for a finding."""


@dataclass(frozen=True)
class Finding:
    """`evidence` is a clause with this run's figures. `settings` cure the problem (fixes.py)."""

    evidence: str
    settings: fixes.Settings
    by_fault: bool = False
    """Whether an injected misconfiguration causes it. Other findings may be consequences of it."""
    is_local: bool = False
    """Whether it is too short or too small to explain the other findings."""
    ports: tuple[str, ...] = ()
    """Ports that the watchdog took out of PFC, where that is the evidence."""


Signature = Callable[[RunFacts], Finding | None]


def deadlock(run: RunFacts) -> Finding | None:
    deadlocks = run.recording.deadlocks
    if not deadlocks or not run.unfinished:
        return None
    ports = ", ".join(deadlocks[0].ports)
    found_at = format_time_ns(deadlocks[0].found_ns)
    evidence = f"at {found_at}, these ports were found waiting for each other: {ports}"
    switch = run.topology.port_named[deadlocks[0].ports[0]].node
    return Finding(evidence, fixes.watchdog(run, switch, looks=100))


def credit_deadlock(run: RunFacts) -> Finding | None:
    deadlocks = run.recording.deadlocks
    if not deadlocks or not run.unfinished:
        return None
    ports = ", ".join(deadlocks[0].ports)
    found_at = format_time_ns(deadlocks[0].found_ns)
    evidence = (
        f"at {found_at}, these ports were found waiting for each other's "
        f"credit: {ports}; {len(run.unfinished)} of {len(run.flows)} flows are unfinished"
    )
    switch = run.topology.port_named[deadlocks[0].ports[0]].node
    return Finding(evidence, fixes.loop_free_routes(run, switch))


def gave_up(run: RunFacts) -> Finding | None:
    failed = run.recording.failed_queue_pairs
    if not failed:
        return None
    first, flows = failed[0], {flow.name: flow for flow in run.flows}
    named = shortened([f"{qp.flow} ({qp.src} to {qp.dst})" for qp in failed], _MOST_NAMED)
    evidence = (
        f"{len(failed)} queue pair{'' if len(failed) == 1 else 's'} went to the error state: "
        f"{named}. The first did at {format_time_ns(first.at_ns)}: "
        f"{STATUSES.get(first.status, first.status)}{_after(run, first)}"
    )
    timed_out = [
        flows[qp.flow]
        for qp in failed
        if qp.status == RETRY_EXCEEDED and qp.flow in flows and not _is_cut_off(run, qp)
    ]
    return Finding(evidence, fixes.longer_timeout(run, timed_out))


def _is_cut_off(run: RunFacts, failed: FailedQueuePair) -> bool:
    """Whether a fault separates the queue pair from its peer, however long it waits."""
    fault = blamed(run, failed)
    return fault is not None and is_for_good(run, failed, fault)


def _after(run: RunFacts, first: FailedQueuePair) -> str:
    """How long the queue pair waited, and what the fabric did to its packets meanwhile."""
    if first.status != RETRY_EXCEEDED:
        return ""
    nic = run.spec.host(first.src).nic
    waits = format_time_ns(ack_timeout_ps(nic.timeout) / PS_PER_NS)
    retries = f" after {nic.retry_count} retries without progress (timeout: {nic.timeout}, {waits})"
    return f"{retries}; {_meanwhile(run, first)}"


def _meanwhile(run: RunFacts, first: FailedQueuePair) -> str:
    fault = blamed(run, first)
    if fault is not None:
        return (
            f"the fault {fault.name} at {fault.place}, {lasts(fault)}, is on its path and lost "
            f"{counted(fault.packets_dropped, 'packet')}{_without_route(run)}"
        )
    lost, whose = _lost_beside(run, first)
    if lost:
        return f"{counted(lost, 'packet')}{whose} {'was' if lost == 1 else 'were'} lost in total"
    no_packet = f"no packet{whose} was lost"
    waited = run.port_waiting_ns.get(run.topology.port_name[run.topology.ports[first.src][0]], 0)
    if waited >= STANDING * max(first.at_ns, 1):
        cause = "missing credit" if run.uses_credits else "pauses"
        return f"{no_packet}, but {cause} held {first.src} back, so answers came too late"
    return f"{no_packet}: answers took longer than that"


def _without_route(run: RunFacts) -> str:
    """A clause about packets that switches dropped because they had no route."""
    count = _no_route(run)
    return f"; switches dropped {count:,} more because they had no route" if count else ""


def _no_route(run: RunFacts) -> int:
    return sum(own.get("no_route", 0) for own in run.recording.ports.values())


def _lost_beside(run: RunFacts, first: FailedQueuePair) -> tuple[int, str]:
    """How many lost packets may have been the flow's, and a clause that says which packets were
    counted: those of the flow's priority where switches count by priority, else all."""
    in_all = run.drops + run.dropped_by_faults + run.dropped_by_hosts
    flow = next((own for own in run.flows if own.name == first.flow), None)
    if not in_all or run.uses_credits or flow is None:
        return in_all, ""
    priority = run.priority_of(flow)
    everywhere = (*run.recording.ports.values(), *run.recording.hosts.values())
    lost = sum(own.get(f"prio{priority}_dropped_packets", 0) for own in everywhere)
    return lost, f" of its priority, {priority},"


def pause_storm(run: RunFacts) -> Finding | None:
    """A host that pauses its leaf for long: flows to it, or all flows behind it, stand still."""
    for host, paused, turns in _pausing_hosts(run):
        spreads = paused >= STANDING and (_spreads_from(run, host) or _waits_for(run, host))
        delays_others = spreads or _delays(run, host)
        unbroken = turns <= SHORT_TURNS + len(_storms(run, host))
        if unbroken and delays_others and not _is_guarded(run, host):
            evidence = (
                f"{host} paused its leaf for {paused:.0%} of the time without a break"
                f"{_as_asked_for(run, host)}"
            )
            leaf = fixes.leaf_port(run, host).node
            length_ns = paused * _lasted_ns(run) / max(turns, 1)
            fix = fixes.watchdog(run, leaf, looks=20, storm_ns=length_ns)
            return Finding(evidence, fix, is_local=not spreads)
    return None


def guarded_storm(run: RunFacts) -> Finding | None:
    """The watchdog works, but the host still sends pauses."""
    guarded = [own for own in _pausing_hosts(run) if _is_guarded(run, own[0])]
    if not guarded:
        return None
    ports = tuple(run.topology.port_name[fixes.leaf_port(run, host)] for host, _, _ in guarded)
    (first, part, _), *others = guarded
    also = "".join(f", {host} for {part:.0%}" for host, part, _ in others)
    evidence = (
        f"{first} paused its leaf for {part:.0%} of the time{also}; the watchdog took "
        f"{', '.join(ports)} out of PFC and dropped "
        f"{counted(run.total('drops_watchdog'), 'packet')}"
    )
    return Finding(evidence, (), ports=ports)


def slow_receiver(run: RunFacts) -> Finding | None:
    for host, paused, turns in _pausing_hosts(run):
        if turns > SHORT_TURNS and _spreads_from(run, host):
            evidence = f"{host} paused its leaf {turns:,} times, {paused:.0%} of the time"
            return Finding(evidence, fixes.congestion_control(run))
    return None


def livelock(run: RunFacts) -> Finding | None:
    unfinished = [f for f in run.unfinished if run.spec.host(f.src).nic.recovery == "go-back-0"]
    resent = run.total("retransmitted_packets")
    if not unfinished or 2 * resent < run.total("packets"):
        return None
    evidence = f"{resent:,} of {run.total('packets'):,} packets were sent again without progress"
    requesters = [flow.src for flow in unfinished]  # they also resend for a READ
    return Finding(evidence, fixes.nics(run, requesters, "recovery", "go-back-n"))


def reordering(run: RunFacts) -> Finding | None:
    """NAKs without losses: the receiver takes packets that came by another path for a gap."""
    naks = sum(own.get("packet_seq_err", 0) for own in run.recording.hosts.values())
    lost = run.drops + run.dropped_by_faults + run.dropped_by_hosts
    resent, sent = run.total("retransmitted_packets"), run.total("packets")
    senders = {flow.bytes_from for flow in run.spec.fabric_flows()}
    going_back = {
        host for host in senders if not run.spec.host(host).nic.recovery_scheme.keeps_early_packets
    }
    if not going_back or naks <= lost or resent < MANY_RESENT * sent:
        return None
    early = sum(own.get("out_of_sequence", 0) for own in run.recording.hosts.values())
    losses = f"{lost:,} were lost" if lost else "none was lost"
    evidence = (
        f"{early:,} packets arrived out of order{_by_routing(run)}, which {_recoveries(run)} "
        f"treats as losses: {resent:,} of {sent:,} packets were sent again, though {losses}"
    )
    return Finding(evidence, fixes.any_order(run, going_back), is_local=lost > 0)


def _by_routing(run: RunFacts) -> str:
    topology = run.topology
    kinds = {run.spec.switch(name).routing.kind for name in topology.switch}
    found = sorted(kinds & {*PACKET_KINDS, "flowlet"})
    return f" under {' and '.join(found)} routing" if found else ""


def _recoveries(run: RunFacts) -> str:
    own = {run.spec.host(flow.bytes_from).nic.recovery_scheme for flow in run.spec.fabric_flows()}
    return " and ".join(sorted(scheme.name for scheme in own if not scheme.keeps_early_packets))


def wrong_map(run: RunFacts) -> Finding | None:
    fault = _hitting(run, WrongMap)
    if fault is not None:
        did = f"{counted(fault.hits, 'packet')} got a priority of its map"
        return _by_fault(run, fault, did)
    topology = run.topology
    for near, far in topology.peer.items():
        if near.node not in topology.switch or far.node not in topology.switch:
            continue
        near_counters, far_counters = _counters(run, near), _counters(run, far)
        for priority in range(PRIORITIES):
            sent = near_counters.get(f"tx_prio{priority}_packets", 0)
            if not sent or far_counters.get(f"rx_prio{priority}_packets"):
                continue
            odd = port_with_wrong_map(run, _ways_in(run, near.node, priority), far, priority)
            if odd is not None:
                evidence = (
                    f"{topology.port_name[near]} sent {counted(sent, 'packet')} of priority "
                    f"{priority}, "
                    f"and {far.node} received none of that priority; "
                    f"the map of {topology.port_name[odd.port]} differs from that of most ports"
                    f"{_paused_in_vain(run)}"
                )
                return Finding(evidence, fixes.same_map(run, odd.port, odd.right))
    return None


def _paused_in_vain(run: RunFacts) -> str:
    """A clause about packets that found no room because pauses for their priority stop nothing."""
    lost = {
        port: drops
        for port in run.topology.switch_ports
        for priority in range(PRIORITIES)
        if (drops := _count(run, port, f"rx_prio{priority}_buf_discard"))
        and _pauses_in_vain(run, port, priority)
    }
    if not lost:
        return ""
    worst = max(lost, key=lambda port: lost[port])
    return (
        f"; pauses for that priority do not stop them: {run.topology.port_name[worst]} "
        f"dropped {counted(lost[worst], 'packet')} because no buffer space was left"
    )


def unseen_priority(run: RunFacts) -> Finding | None:
    """A host and its leaf map packets to different priorities, or VLAN tags are missing. Where no
    packet arrived at all, there is no finding."""
    for host in run.topology.host:
        leaf = fixes.leaf_port(run, host)
        if not any(
            _count(run, leaf, f"rx_prio{priority}_packets") for priority in range(PRIORITIES)
        ):
            continue
        pfc = run.spec.port(leaf).pfc
        for priority in pfc.priorities if pfc else ():
            sent = run.recording.hosts.get(host, {}).get(f"tx_prio{priority}_packets", 0)
            if not sent or _count(run, leaf, f"rx_prio{priority}_packets"):
                continue
            untagged = fixes.wants_tags(run, host)
            why = "; the port trusts PCP, and they have no VLAN tag" if untagged else ""
            evidence = (
                f"{host} sent {counted(sent, 'packet')} of lossless priority {priority}, and "
                f"{run.topology.port_name[leaf]} received none of that priority{why}"
            )
            return Finding(evidence, fixes.same_priorities(run, host))
    return None


def small_headroom(run: RunFacts) -> Finding | None:
    fault = _hitting(run, SmallHeadroom)
    if fault is not None:
        did = f"{counted(fault.hits, 'packet')} of lossless priorities found no buffer space"
        return _by_fault(run, fault, did)
    for port in run.topology.switch_ports:
        pfc = run.spec.port(port).pfc
        for priority in pfc.priorities if pfc else ():
            drops = _count(run, port, f"rx_prio{priority}_buf_discard")
            if drops and not _pauses_in_vain(run, port, priority):
                evidence = (
                    f"{run.topology.port_name[port]} dropped {counted(drops, 'packet')} of "
                    f"lossless priority {priority} because no buffer space was left"
                )
                return Finding(evidence, fixes.headroom(run, port))
    return None


def _pauses_in_vain(run: RunFacts, port: Port, priority: int) -> bool:
    """Whether the switch at the far end sends nothing on this priority by its own map. Packets that
    arrive on this priority then do not obey its pauses."""
    far = run.topology.peer[port]
    return far.node in run.topology.switch and not _count(run, far, f"tx_prio{priority}_packets")


def early_timers(run: RunFacts) -> Finding | None:
    """Retransmission timers that fired too early: answers were late, and nothing was lost."""
    early = resent_without_loss(run)
    if not early or reordering(run):
        return None
    worst = max(early, key=lambda flow: flow.resent)
    code = run.spec.host(worst.src).nic.timeout
    again = counted(sum(flow.resent for flow in early), "packet")
    whose = "its" if len(early) == 1 else "their"
    most = f", {worst.resent:,} of them by {worst.name}" if len(early) > 1 else ""
    evidence = (
        f"{counted(len(early), 'flow') if most else worst.name} sent {again} again though none of "
        f"{whose} packets was lost{most}: {worst.src}'s retransmission timer is "
        f"{format_time_ns(ack_timeout_ps(code) / PS_PER_NS)} "
        f"({dotted(for_host(run.spec, worst.src, 'nic', 'timeout'))}: {code}), and answers took "
        "longer than that"
    )
    return Finding(evidence, fixes.longer_timeout(run, early))


def lost_by_fault(run: RunFacts) -> Finding | None:
    """Packets that injected faults lost. No setting brings them back."""
    faults = lossy_faults(run)
    if not faults:
        return None
    worst, *others = faults
    more = sum(fault.packets_dropped for fault in others)
    also = f"; {counted(len(others), 'more fault')} lost {more:,}" if others else ""
    dropped = run.drops - _no_route(run)
    beside = f"; switches dropped {counted(dropped, 'packet')} for other reasons" if dropped else ""
    consequences = f"{_without_route(run)}{beside}{timer_waits(run)}"
    evidence = (
        f"the fault {worst.name} at {worst.place}, {lasts(worst)}, lost "
        f"{counted(worst.packets_dropped, 'packet')}{also}{consequences}"
    )
    return Finding(evidence, ())


def loss(run: RunFacts) -> Finding | None:
    """Drops of a lossy priority, at the port and priority with most. Where faults lost more,
    `lost_by_fault` reports the drops."""
    drops = {
        (port, priority): count
        for port in run.topology.switch_ports
        for own in (_counters(run, port),)
        for priority in range(PRIORITIES)
        if (count := own.get(f"tx_prio{priority}_discards"))
    }
    if not drops or sum(drops.values()) < run.dropped_by_faults:
        return None
    port, priority = max(drops, key=lambda place: drops[place])
    ports = len({port for port, _ in drops})
    whole = f"; {ports} ports dropped {sum(drops.values()):,} in all" if ports > 1 else ""
    evidence = (
        f"{run.topology.port_name[port]} dropped {counted(drops[port, priority], 'packet')} of "
        f"priority {priority}, which has no PFC{whole}"
    )
    waits = "" if run.dropped_by_faults else timer_waits(run)
    return Finding(evidence + waits, fixes.lossless(run, priority))


def late_marks(run: RunFacts) -> Finding | None:
    if not run.total("pause_frames") or not _controlled(run):
        return None
    for fault in run.recording.faults:
        tuned = fault.kind == WrongEcn.key and fault.packets_seen
        if tuned and (did := _late_by_fault(run, fault.name)):
            return _by_fault(run, fault, did)
    if marked_where_paused(run):
        return None
    late = fixes.late_ports(run)
    others = " of a priority that pauses" if run.total("ce_marked") else ""
    for port in late:
        (section, curve), *_ = late_curves(run.spec, port).items()
        key, xoff = dotted(("switches", *section, "kmin")), fixes.xoff_bytes(run.spec, port)
        evidence = (
            f"{counted(run.total('pause_frames'), 'pause frame')} came before the first mark"
            f"{others}: Kmin is {format_size(curve.kmin_bytes)} ({key}), XOFF {format_size(xoff)}"
        )
        return Finding(evidence, fixes.early_marks(run, late))
    return None


def unheeded_marks(run: RunFacts) -> Finding | None:
    """Marks without a reaction. Without pauses, losses or unfinished flows, they need no cure."""
    marked = run.total("ce_marked")
    if not (run.total("pause_frames") or run.drops or run.unfinished):
        return None
    if not marked or run.total("cnp") or _controlled(run):
        return None
    evidence = f"{marked:,} packets were marked and no CNP was sent"
    return Finding(evidence, fixes.dcqcn(run, run.senders))


def ignored_cnps(run: RunFacts) -> Finding | None:
    fault = _hitting(run, IgnoredCnps)
    return (
        None
        if fault is None
        else _by_fault(run, fault, f"{counted(fault.hits, 'CNP')} did not reduce the rate")
    )


def victim(run: RunFacts) -> Finding | None:
    if has_cnps_for_paused_priorities(run):
        return None
    flows_of = Counter(flow.bytes_from for flow in run.flows)
    for flow in run.flows:
        if flow.name in run.gave_up or _wants_less(run, flow):
            continue
        own_bps, receives = rate_bps(run, flow), fixes.leaf_port(run, flow.bytes_to)
        fair_bps = _link_bps(run, flow.bytes_from) / flows_of[flow.bytes_from]
        if own_bps >= fair_bps / 2 or not _is_held_back(run, flow):
            continue
        start, end = life_ns(run, flow)
        takes_none = held_ns(run, flow, receives) >= STANDING * (end - start)
        free = room(run, flow, receives)
        if free > 0.5 and not takes_none and not has_full_cable_on_path(run, flow):
            evidence = (
                f"{flow.name} had {format_rate(own_bps)} of its fair share of "
                f"{format_rate(fair_bps)}, though {free:.0%} of {flow.bytes_to}'s cable was free"
            )
            return Finding(evidence, fixes.congestion_control(run))
    return None


def _wants_less(run: RunFacts, flow: FlowRecord) -> bool:
    """Whether the traffic limits the flow: storage commands, paced messages, and ping-pong."""
    entry = run.entries.get(flow.traffic)
    is_spaced = isinstance(entry, MessageEntry) and bool(entry.every_ps)
    return flow.traffic in run.storage or is_spaced or isinstance(entry, PingPong)


def _is_held_back(run: RunFacts, flow: FlowRecord) -> bool:
    """Whether pauses of the flow's priority stopped its sender for a good part of its time."""
    start, end = life_ns(run, flow)
    counters = run.recording.hosts.get(flow.bytes_from, {})
    prefixes = ("global", f"prio{run.priority_of(flow)}")
    paused_ns = 1000 * max(counters.get(f"rx_{one}_pause_duration", 0) for one in prefixes)
    much_ns = STANDING * (end - start)
    sends = run.topology.ports[flow.bytes_from][0]
    return paused_ns >= much_ns and held_ns(run, flow, sends) >= much_ns


def unfairness(run: RunFacts) -> Finding | None:
    """Unequal rates of flows to one host, where pauses met them at the hosts or in the fabric."""
    if has_cnps_for_paused_priorities(run) or not run.total("pause_frames"):
        return None
    drawn = {entry.name for entry in run.spec.traffic if isinstance(entry, Background)}
    for name, flows in run.traffic.items():
        if name in drawn or run.gave_up & {flow.name for flow in flows}:
            continue
        rates = [rate_bps(run, flow) for flow in flows]
        together = len({flow.bytes_to for flow in flows}) == 1 and len(flows) > 2
        uneven = together and any(rates) and (jain := _jain(rates)) < 0.9
        if uneven and any(_met_pauses(run, flow) for flow in flows):
            evidence = (
                f"flows of {name} had {format_rate(min(rates))} to {format_rate(max(rates))} "
                f"(Jain index {jain:.2f}), with "
                f"{counted(run.total('pause_frames'), 'pause frame')}"
            )
            return Finding(evidence, fixes.congestion_control(run))
    return None


def _met_pauses(run: RunFacts, flow: FlowRecord) -> bool:
    """Whether any port on the flow's path was paused for a good part of its time."""
    path = run.columns(chain(*run.paths.stages(flow.bytes_from, flow.bytes_to)))
    start, end = life_ns(run, flow)
    if not path:
        return False
    return float(run.waited_ns(path, start, end).max()) >= STANDING * (end - start)


# --- injected misconfigurations ---


def _hitting(run: RunFacts, kind: type[FaultKind]) -> FaultRecord | None:
    """The first fault of this kind that hit anything."""
    return next((own for own in run.recording.faults if own.kind == kind.key and own.hits), None)


def _by_fault(run: RunFacts, fault: FaultRecord, did: str) -> Finding:
    evidence = f"the fault {fault.name} at {fault.place} causes it, {lasts(fault)}: {did}"
    return Finding(evidence, fixes.without_fault(run, fault.name), by_fault=True)


def _late_by_fault(run: RunFacts, name: str) -> str | None:
    """Where the fault raised Kmin above XOFF, as a clause; None when it did not."""
    spec = run.spec
    named = zip(fault_names(spec.faults), spec.faults, strict=True)
    what = next(fault.what for own, fault in named if own == name)
    assert isinstance(what, WrongEcn)
    for port in what.ports(spec, run.topology):
        own, xoff = spec.port(port), fixes.xoff_bytes(spec, port)
        kmin = what.curve(own.ecn).kmin_bytes if own.ecn else 0
        if own.pfc and kmin > xoff:
            where = run.topology.port_name[port]
            return f"it raises Kmin at {where} to {format_size(kmin)}, and XOFF is {own.pfc.xoff}"
    return None


# --- figures of a run ---


def _counters(run: RunFacts, port: Port) -> Counters:
    return run.recording.ports.get(run.topology.port_name[port], {})


def _count(run: RunFacts, port: Port, counter: str) -> int:
    return _counters(run, port).get(counter, 0)


def _lasted_ns(run: RunFacts) -> int:
    """The length of the run, without a tail in which only a timer runs."""
    return end_ns(run) if run.last_finish_ns is not None else run.window_ns[1]


def _paused(run: RunFacts, port: Port) -> float:
    """The part of the run for which the far end paused this port."""
    return _most(_counters(run, port), "pause_duration") * 1000 / _lasted_ns(run)


def _most(counters: Counters, name: str) -> int:
    """A pause counter of the priority that has the most, or of global pauses if that is more."""
    prefixes = ("global", *(f"prio{priority}" for priority in range(PRIORITIES)))
    return max(counters.get(f"rx_{one}_{name}", 0) for one in prefixes)


def _ways_in(run: RunFacts, switch: str, priority: int) -> list[Port]:
    """Ports of a switch that received packets of a priority."""
    counter = f"rx_prio{priority}_packets"
    return [port for port in run.topology.ports[switch] if _count(run, port, counter)]


def _pausing_hosts(run: RunFacts) -> Iterator[tuple[str, float, int]]:
    """Hosts that pause their leaf: the host, the part of the run, and the number of pauses."""
    for host in run.topology.host:
        port = fixes.leaf_port(run, host)
        if (paused := _paused(run, port)) > 0:
            yield host, paused, _most(_counters(run, port), "pause_transition")


def watchdog_acts(spec: Spec, switch: str) -> bool:
    """Whether the switch has a watchdog that acts, rather than one that only reports storms."""
    own = spec.switch(switch).watchdog
    return own is not None and own.action != "alert"


def _is_guarded(run: RunFacts, host: str) -> bool:
    """Whether a watchdog took the host's port out of PFC."""
    leaf = fixes.leaf_port(run, host)
    name = "prio{}_PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"
    acts = watchdog_acts(run.spec, leaf.node)
    return acts and any(_count(run, leaf, name.format(p)) for p in range(PRIORITIES))


def _waits_for(run: RunFacts, host: str) -> bool:
    """Whether a flow to or from the host is unfinished."""
    return any(host in (flow.src, flow.dst) for flow in run.unfinished)


def _as_asked_for(run: RunFacts, host: str) -> str:
    """A clause that names the faults of the spec that cause the pauses; empty where none does."""
    storms = [f"{own.name} ({lasts(own)})" for own in _storms(run, host)]
    return f", caused by the fault {' and '.join(storms)}" if storms else ""


def _delays(run: RunFacts, host: str) -> bool:
    """Whether the host's pauses took a good part of the time of one of its flows. For a pause storm
    of the spec, it is enough that a flow met it."""
    leaf = fixes.leaf_port(run, host)
    least = 0 if _storms(run, host) else STANDING
    for flow in (flow for flow in run.flows if host in (flow.src, flow.dst)):
        start, end = life_ns(run, flow)
        held = held_ns(run, flow, leaf)
        if held > 0 and held >= least * (end - start):
            return True
    return False


def _storms(run: RunFacts, host: str) -> list[FaultRecord]:
    """Pause storms that the spec injects at a host."""
    faults = run.recording.faults
    return [own for own in faults if own.kind == PauseStorm.key and own.place == host]


def _spreads_from(run: RunFacts, host: str) -> bool:
    """Whether other ports or senders stand still as well."""
    own = fixes.leaf_port(run, host)
    others = (_paused(run, port) for port in run.topology.switch_ports if port != own)
    senders = (_host_paused(run, flow.bytes_from) for flow in run.flows)
    return max((*others, *senders), default=0) >= STANDING


def _host_paused(run: RunFacts, host: str) -> float:
    counters = run.recording.hosts.get(host, {})
    return _most(counters, "pause_duration") * 1000 / _lasted_ns(run)


def _controlled(run: RunFacts) -> bool:
    return any(run.spec.host(host).nic.cc != "none" for host in run.senders)


def _link_bps(run: RunFacts, host: str) -> int:
    return run.topology.cable[run.topology.ports[host][0]].rate_bps


def _jain(rates: list[float]) -> float:
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))
