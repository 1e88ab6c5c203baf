"""Victim flows: they wait for credit behind flows to a full cable, but go elsewhere themselves.

    h5 ──▶ leaf2 ══ no credit on the lane ══▶ spine1 ══▶ leaf1 ──▶ h1    full: the root
           ▲                                             └───────▶ h2    has room: a victim's
           └ both flows wait here

Credits belong to a virtual lane. A flow on another lane is therefore neither held back by the
root nor a cause of it. A flow's lane follows from its service level and the number of operational
lanes of a link (IBTA vol 1, 7.6.6), both as the spec gives them.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from emu.engines import ENGINES_WITH_LEVELS
from emu.measure.records import FlowRecord
from emu.report import credit_fixes, fixes
from emu.report.detectors import STANDING, Finding
from emu.report.fixes import Settings
from emu.report.room import FULL, has_full_cable_on_path, held_ns, life_ns, rate_bps, room, rooms
from emu.report.run_view import XMIT_WAIT, RunFacts
from emu.spec.diagnostic import dotted
from emu.spec.rules.provenance import for_switch
from emu.spec.switch import OPERATIONAL_VLS
from emu.units import format_rate
from emu.words import counted, listed
from topologies.graph import Port


def credit_victims(run: RunFacts) -> Finding | None:
    waiting = [flow for flow in run.flows if _waits_for_others(run, flow)]
    rooted = _roots(run, waiting)
    if not rooted:
        return None
    (root, lane), _ = Counter(rooted.values()).most_common(1)[0]
    victims = [
        flow
        for flow in waiting
        if _lane(run, flow, root) == lane and room(run, flow, root) <= 2 * FULL
    ]
    first = max(victims, key=lambda flow: np.diff(life_ns(run, flow))[0])
    host = run.topology.peer[root].node
    congesting = [
        flow for flow in run.flows if flow.bytes_to == host and _lane(run, flow, root) == lane
    ]
    whose = "its receiver's cable" if len(victims) == 1 else "their receivers' cables"
    evidence = (
        f"{len(victims):,} of {counted(len(run.flows), 'flow')} waited for credit though more than "
        f"half of {whose} was free. {first.name} had {format_rate(rate_bps(run, first))}; "
        f"meanwhile {run.topology.port_name[root]} was {min(1 - room(run, first, root), 1):.0%} "
        f"busy, and the congestion spread over {_named(lane)}{_shared(run, victims, congesting)}: "
        f"{counted(_behind(run, first), 'port')} waited for at least a fifth of that time"
    )
    apart = _lanes_apart(run, victims, congesting)
    return Finding(evidence, apart or credit_fixes.own_lane(run, _movable(victims, congesting)))


def _named(lane: int | None) -> str:
    return "virtual lanes" if lane is None else f"virtual lane {lane}"


def _waits_for_others(run: RunFacts, flow: FlowRecord) -> bool:
    """Whether the flow waited for credit for a good part of its time, and nothing on its own path
    explains that."""
    sender = run.topology.ports[flow.bytes_from][0]
    start, end = life_ns(run, flow)
    lane = _lane(run, flow, sender)
    counter = XMIT_WAIT if lane is None else f"{XMIT_WAIT}_VL{lane}"
    of_lane_ns = run.recording.hosts.get(flow.bytes_from, {}).get(counter, 0)
    if min(of_lane_ns, held_ns(run, flow, sender)) < STANDING * (end - start):
        return False
    receives = fixes.leaf_port(run, flow.bytes_to)
    return room(run, flow, receives) > 0.5 and not has_full_cable_on_path(run, flow)


def _roots(run: RunFacts, waiting: list[FlowRecord]) -> dict[str, tuple[Port, int | None]]:
    """For each waiting flow: the port to a host that was fullest while the flow ran, and the lane
    that both share there. Flows during which no such port was full are left out."""
    lanes = _lanes_into_hosts(run) if waiting else {}
    on_level: dict[int, list[Port]] = {}
    found: dict[str, tuple[Port, int | None]] = {}
    for flow in waiting:
        level = _service_level(run, flow)
        if level not in on_level:
            shared = (port for port, own in lanes.items() if _lane(run, flow, port) in own)
            on_level[level] = list(shared)
        ports = on_level[level]
        free = rooms(run, flow, ports)
        if ports and free.min() <= 2 * FULL:
            root = ports[int(free.argmin())]
            found[flow.name] = root, _lane(run, flow, root)
    return found


def _lanes_into_hosts(run: RunFacts) -> dict[Port, set[int | None]]:
    """Each port to a host -> the lanes of the flows to that host."""
    lanes: dict[Port, set[int | None]] = defaultdict(set)
    for flow in run.flows:
        port = fixes.leaf_port(run, flow.bytes_to)
        lanes[port].add(_lane(run, flow, port))
    return lanes


def _is_told_levels(run: RunFacts) -> bool:
    """Whether the routing engine chooses service levels to keep routes free of deadlocks."""
    return run.spec.subnet.engine in ENGINES_WITH_LEVELS


def _service_level(run: RunFacts, flow: FlowRecord) -> int:
    priority = run.asked_priority(flow)
    return run.spec.host(flow.bytes_from).nic.sl if priority is None else priority


def _lane(run: RunFacts, flow: FlowRecord, port: Port) -> int | None:
    """The lane of the flow's packets on a port's cable. Both ends of a link use the smaller of
    their numbers of lanes. None when only the path record tells the lane, not the spec."""
    ends = (port.node, run.topology.peer[port].node)
    vls = min(run.spec.switch(end).credits.vls for end in ends if end in run.topology.switch)
    if vls > 1 and _is_told_levels(run):
        return None
    return run.spec.subnet.vl_of_sl(vls)[_service_level(run, flow)]


def _shared(run: RunFacts, victims: list[FlowRecord], congesting: list[FlowRecord]) -> str:
    """A clause about different service levels that share one lane; empty where there are none."""
    levels = {_service_level(run, flow) for flow in (*victims, *congesting)}
    if len(levels) < 2 or _is_told_levels(run):
        return ""
    return f", which service levels {listed([str(level) for level in sorted(levels)])} share"


def _lanes_apart(
    run: RunFacts, victims: list[FlowRecord], congesting: list[FlowRecord]
) -> Settings:
    """The number of lanes that separates the level of most victims from the level of most flows to
    the root. No settings where both have one level, or no number of lanes separates them."""
    (one, _), (other, _) = (
        Counter(_service_level(run, flow) for flow in flows).most_common(1)[0]
        for flows in (victims, congesting)
    )
    enough = (
        vls
        for vls in OPERATIONAL_VLS
        if run.spec.subnet.vl_of_sl(vls)[one] != run.spec.subnet.vl_of_sl(vls)[other]
    )
    wanted = 0 if _is_told_levels(run) else next(enough, 0)
    names = run.topology.switch
    narrow = [name for name in names if run.spec.switch(name).credits.vls < wanted]
    keys = (dotted(for_switch(run.spec, name, "credits", "vls")) for name in narrow)
    return tuple(f"{key}={wanted}" for key in dict.fromkeys(keys))


def _behind(run: RunFacts, flow: FlowRecord) -> int:
    """How many ports waited for a good part of the time in which the flow ran."""
    start, end = life_ns(run, flow)
    waited_ns = run.waited_ns(range(len(run.sampled)), start, end)
    return int(np.count_nonzero(waited_ns >= STANDING * (end - start)))


def _movable(victims: list[FlowRecord], congesting: list[FlowRecord]) -> set[str]:
    """Hosts whose service level may change; none where that would move flows to the root, too."""
    hosts = {flow.bytes_from for flow in victims}
    return set() if hosts & {flow.bytes_from for flow in congesting} else hosts
