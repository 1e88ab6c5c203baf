"""Settings for victims of congestion that spreads by credits: a lane of their own, or a table.

    senders ══▶ a port that is full       all wait for credit behind one lane
    victims ──▶ elsewhere
                  a service level with a lane of its own     the victims do not wait there
                  a table that holds the senders to 1/N      nobody waits there

The table is printed only where runs on the virtual clock have shown that it cures:

    Of N senders each gets a mark once in `(marking_rate + 1) * N` packets of the full cable, and
    must come to wait N - 1 packets after each of its own. With CCTI_Timer twice the time between
    two marks, the index rises by half a step a mark until it is there. So it was with 2 to 24
    senders at 100 and 400 Gbit/s: victims go where they go from when the index has got there, and
    the senders use up to a seventh less of their cable. Where the congestion was shorter than about
    twice that time, or the table ended near the delay that is needed, nothing was cured; nor where
    the timer was 10 us, the default, and marks were farther apart (4 senders at 100 Gbit/s).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import accumulate

from emu.engines import ENGINES_WITH_LEVELS
from emu.measure.recording import FlowRecord
from emu.report import fixes
from emu.report.fixes import Settings
from emu.report.run_view import RunFacts
from emu.spec.congestion_control.cct import Cct
from emu.spec.diagnostic import dotted
from emu.spec.ecn_feedback import Fecn
from emu.spec.rules.provenance import for_host, for_switch
from emu.spec.rules.subnet import service_levels
from emu.spec.scenario import Spec
from emu.spec.subnet import SLS, SubnetSpec
from emu.spec.switch import OPERATIONAL_VLS
from emu.spec.traffic.entry import MessageEntry

_MOST_MOVED = 8
"""Hosts whose service level a cure names."""
_TIMER_TO_MARKS = 2
"""CCTI_Timer, in times between two marks of a sender."""
_CCTI_TIMER_NS = 1024
_SETTLED = 3
"""How much longer than the index needs a congestion must last."""
_OF_THE_TABLE = 0.75
"""Part of the table in which the delay must be that is needed."""


def own_lane(run: RunFacts, hosts: Collection[str]) -> Settings:
    """A service level with a virtual lane that nobody uses, for what these hosts send: their NICs',
    or that of an entry, which goes before it and is no one else's. Where there is none, or these
    are none or too many to name, InfiniBand's congestion control."""
    level = _unused_level(run.spec)
    if level is None or not 0 < len(hosts) <= _MOST_MOVED:
        return _held_by_a_table(run)
    sl, vls = level
    sent = {entry.name: _senders(run, entry.name) & set(hosts) for entry in run.spec.traffic}
    asked = [entry for entry in run.spec.traffic if sent[entry.name] and entry.priority is not None]
    if any(_senders(run, entry.name) - set(hosts) for entry in asked):
        return _held_by_a_table(run)
    own = {host for name in sent.keys() - {entry.name for entry in asked} for host in sent[name]}
    if not own and not asked:
        return _held_by_a_table(run)
    narrow = [name for name in run.topology.switch if run.spec.switch(name).credits.vls < vls]
    keys = dict.fromkeys(dotted(for_switch(run.spec, name, "credits", "vls")) for name in narrow)
    return (
        *(f"{key}={vls}" for key in keys),
        *(f"{dotted(('traffic', entry.name, 'priority'))}={sl}" for entry in asked),
        *(f"{dotted(('hosts', 'nodes', host, 'nic', 'sl'))}={sl}" for host in sorted(own)),
    )


def _senders(run: RunFacts, traffic: str) -> set[str]:
    return {flow.bytes_from for flow in run.traffic.get(traffic, ())}


def _unused_level(spec: Spec) -> tuple[int, int] | None:
    """A service level, and the fewest lanes with which it has one of its own everywhere; None:
    there is none, or the engine says itself in path records which level a path has."""
    if spec.subnet.engine in ENGINES_WITH_LEVELS:
        return None
    used = frozenset(service_levels(spec))
    switches = [spec.switch(name) for name in spec.topology.build().switch]
    sprayed = {own.routing.sls for own in switches if own.routing.sls is not None}
    for vls in OPERATIONAL_VLS:
        widths = {max(vls, own.credits.vls) for own in switches}
        for sl in range(SLS):
            alike = all((sl in sls) == (level in sls) for sls in sprayed for level in used)
            if alike and _is_apart(spec.subnet, sl, used, widths):
                return sl, vls
    return None


def _is_apart(subnet: SubnetSpec, sl: int, used: frozenset[int], widths: Iterable[int]) -> bool:
    """Whether its lane is served, and no level in use has it, on links so wide."""
    for vls in widths:
        lanes = subnet.vl_of_sl(vls)
        if lanes[sl] not in subnet.vl_arbitration.served - {lanes[level] for level in used}:
            return False
    return True


@dataclass(frozen=True)
class _Crowd:
    """Flows to one host at the same time."""

    host: str
    flows: tuple[FlowRecord, ...]
    most: int
    lasts_ns: int
    """While at least half of the most were on their way."""


def _held_by_a_table(run: RunFacts) -> Settings:
    """Switches that mark, and NICs that slow down at marks by as much as is needed; nothing where
    that has not been seen to cure."""
    crowd = _largest_crowd(run)
    if crowd is None:
        return ()
    port = fixes.leaf_port(run, crowd.host)
    fecn = run.spec.port(port).fecn or Fecn()
    packet_ns = run.spec.largest_frame_bytes * 8e9 / run.topology.cable[port].rate_bps
    between_marks_ns = (fecn.marking_rate + 1) * crowd.most * packet_ns
    if not all(
        _settles(run.spec.host(flow.bytes_from).nic.parameters_of(Cct), crowd, between_marks_ns)
        for flow in crowd.flows
    ):
        return ()
    senders = dict.fromkeys(flow.bytes_from for flow in run.flows)
    deaf = [host for host in senders if run.spec.host(host).nic.cc != "cct"]
    off = [name for name in run.topology.switch if run.spec.switch(name).fecn is None]
    marking = dict.fromkeys(dotted(for_switch(run.spec, name, "fecn")) for name in off)
    timer = str(math.ceil(_TIMER_TO_MARKS * between_marks_ns / _CCTI_TIMER_NS))
    return (
        *_at(run, deaf, ("cc",), "cct"),
        *(f"{key}=on" for key in marking),
        *_at(run, senders, ("cct", "ccti_timer"), timer),
    )


def _at(run: RunFacts, hosts: Iterable[str], key: tuple[str, ...], value: str) -> Settings:
    """One key of these hosts' NICs."""
    keys = (dotted(for_host(run.spec, host, "nic", *key)) for host in hosts)
    return tuple(f"{own}={value}" for own in dict.fromkeys(keys))


def _settles(cct: Cct, crowd: _Crowd, between_marks_ns: float) -> bool:
    """Whether the index gets to where the senders share the cable, long before it is over."""
    needed = next((at for at, delay in enumerate(cct.cct) if delay >= crowd.most - 1), None)
    if needed is None or needed > _OF_THE_TABLE * len(cct.cct):
        return False
    takes_ns = needed * between_marks_ns / (cct.ccti_increase - 1 / _TIMER_TO_MARKS)
    return crowd.lasts_ns >= _SETTLED * takes_ns


def _largest_crowd(run: RunFacts) -> _Crowd | None:
    """Of flows that have something to send from their start to their end; None: of others, too."""
    flows_to: dict[str, list[FlowRecord]] = {}
    for flow in run.flows:
        flows_to.setdefault(flow.bytes_to, []).append(flow)
    crowds = [_crowd(run, host, flows) for host, flows in flows_to.items()]
    largest = max(crowds, key=lambda crowd: crowd.most)
    steady = {
        entry.name
        for entry in run.spec.traffic
        if isinstance(entry, MessageEntry) and not entry.every_ps
    }
    is_steady = all(flow.traffic in steady for flow in largest.flows)
    return largest if is_steady and largest.most > 1 else None


def _crowd(run: RunFacts, host: str, flows: list[FlowRecord]) -> _Crowd:
    last_ns = int(run.recording.series.time_ns[-1])
    changes = sorted(
        change
        for flow in flows
        for change in ((flow.start_ns, 1), (last_ns if flow.end_ns is None else flow.end_ns, -1))
    )
    counts = list(accumulate(by for _, by in changes))
    most = max(counts)
    lasts_ns = sum(
        later - now
        for (now, _), (later, _), count in zip(changes, changes[1:], counts, strict=False)
        if 2 * count >= most
    )
    return _Crowd(host, tuple(flows), most, lasts_ns)
