"""Settings for victims of congestion that credits spread: a lane of their own, or a CCT.

    senders ══▶ a port that is full       all wait for credit of one lane
    victims ──▶ other ports
                  a service level with a lane of its own    victims no longer wait
                  a CCT that holds each sender to 1/N       no flow waits

A congestion control table (CCT) is printed only where runs on the virtual clock have shown that
it cures the problem:

    With N senders, each gets one mark in `(marking_rate + 1) * N` packets of the full cable. Each
    must then wait N - 1 packet times after each of its packets. If CCTI_Timer is twice the time
    between two marks, each mark raises the index by half a step until it is there. Runs with 2 to
    24 senders at 100 and 400 Gbit/s confirm it: once the index is there, the victims flow, and the
    senders use up to a seventh less of their cable. It cured nothing where the congestion lasted
    less than about twice that time, where the table ended near the delay that is needed, and where
    the timer was 10 us, the default, and marks were farther apart (4 senders at 100 Gbit/s).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import accumulate

from emu.engines import ENGINES_WITH_LEVELS
from emu.measure.records import FlowRecord
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
"""The most hosts whose service level a cure changes."""
_TIMER_TO_MARKS = 2
"""CCTI_Timer, in multiples of the time between two marks of a sender."""
_CCTI_TIMER_NS = 1024
_SETTLED = 3
"""Congestion must last so many times as long as the index takes to rise."""
_OF_THE_TABLE = 0.75
"""The delay that is needed must be in this first part of the table."""


def own_lane(run: RunFacts, hosts: Collection[str]) -> Settings:
    """Moves the traffic of these hosts to a service level with a virtual lane of its own.

    The level is set at their NICs, or at an entry of `traffic:` that sets its own and that no other
    host sends. Where no level is free, or the hosts are none or too many, the answer is
    InfiniBand's congestion control.
    """
    level = _unused_level(run.spec)
    if level is None or not 0 < len(hosts) <= _MOST_MOVED:
        return _held_by_a_table(run)
    sl, vls = level
    sent = {entry.name: _senders(run, entry.name) & set(hosts) for entry in run.spec.traffic}
    with_priority = [
        entry for entry in run.spec.traffic if sent[entry.name] and entry.priority is not None
    ]
    if any(_senders(run, entry.name) - set(hosts) for entry in with_priority):
        return _held_by_a_table(run)
    own = {
        host
        for name in sent.keys() - {entry.name for entry in with_priority}
        for host in sent[name]
    }
    if not own and not with_priority:
        return _held_by_a_table(run)
    narrow = [name for name in run.topology.switch if run.spec.switch(name).credits.vls < vls]
    keys = dict.fromkeys(dotted(for_switch(run.spec, name, "credits", "vls")) for name in narrow)
    return (
        *(f"{key}={vls}" for key in keys),
        *(f"{dotted(('traffic', entry.name, 'priority'))}={sl}" for entry in with_priority),
        *(f"{dotted(('hosts', 'nodes', host, 'nic', 'sl'))}={sl}" for host in sorted(own)),
    )


def _senders(run: RunFacts, traffic: str) -> set[str]:
    return {flow.bytes_from for flow in run.traffic.get(traffic, ())}


def _unused_level(spec: Spec) -> tuple[int, int] | None:
    """A service level, and the fewest lanes that give it a lane of its own on every link.

    None when there is no such level, or when the routing engine chooses the levels of paths.
    """
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
    """Whether, for these VL counts, the lane is served and no used level has it."""
    for vls in widths:
        lanes = subnet.vl_of_sl(vls)
        if lanes[sl] not in subnet.vl_arbitration.served - {lanes[level] for level in used}:
            return False
    return True


@dataclass(frozen=True)
class _Incast:
    """Flows that send to one host at the same time."""

    host: str
    flows: tuple[FlowRecord, ...]
    most: int
    lasts_ns: int
    """How long at least half as many flows as `most` were active."""


def _held_by_a_table(run: RunFacts) -> Settings:
    """FECN at switches, and a CCT at NICs that slows senders down far enough. No settings where
    runs have not shown that this cures."""
    incast = _largest_incast(run)
    if incast is None:
        return ()
    port = fixes.leaf_port(run, incast.host)
    fecn = run.spec.port(port).fecn or Fecn()
    packet_ns = run.spec.largest_frame_bytes * 8e9 / run.topology.cable[port].rate_bps
    between_marks_ns = (fecn.marking_rate + 1) * incast.most * packet_ns
    if not all(
        _settles(run.spec.host(flow.bytes_from).nic.parameters_of(Cct), incast, between_marks_ns)
        for flow in incast.flows
    ):
        return ()
    senders = dict.fromkeys(flow.bytes_from for flow in run.flows)
    without_cct = [host for host in senders if run.spec.host(host).nic.cc != "cct"]
    off = [name for name in run.topology.switch if run.spec.switch(name).fecn is None]
    marking = dict.fromkeys(dotted(for_switch(run.spec, name, "fecn")) for name in off)
    timer = str(math.ceil(_TIMER_TO_MARKS * between_marks_ns / _CCTI_TIMER_NS))
    return (
        *_at(run, without_cct, ("cc",), "cct"),
        *(f"{key}=on" for key in marking),
        *_at(run, senders, ("cct", "ccti_timer"), timer),
    )


def _at(run: RunFacts, hosts: Iterable[str], key: tuple[str, ...], value: str) -> Settings:
    """Sets one key of the NICs of these hosts."""
    keys = (dotted(for_host(run.spec, host, "nic", *key)) for host in hosts)
    return tuple(f"{own}={value}" for own in dict.fromkeys(keys))


def _settles(cct: Cct, incast: _Incast, between_marks_ns: float) -> bool:
    """Whether the index reaches the fair share of the cable long before the congestion ends."""
    needed = next((at for at, delay in enumerate(cct.cct) if delay >= incast.most - 1), None)
    if needed is None or needed > _OF_THE_TABLE * len(cct.cct):
        return False
    takes_ns = needed * between_marks_ns / (cct.ccti_increase - 1 / _TIMER_TO_MARKS)
    return incast.lasts_ns >= _SETTLED * takes_ns


def _largest_incast(run: RunFacts) -> _Incast | None:
    """The largest incast; None when some of its flows pause between messages."""
    flows_to: dict[str, list[FlowRecord]] = {}
    for flow in run.flows:
        flows_to.setdefault(flow.bytes_to, []).append(flow)
    incasts = [_incast_of(run, host, flows) for host, flows in flows_to.items()]
    largest = max(incasts, key=lambda incast: incast.most)
    steady = {
        entry.name
        for entry in run.spec.traffic
        if isinstance(entry, MessageEntry) and not entry.every_ps
    }
    is_steady = all(flow.traffic in steady for flow in largest.flows)
    return largest if is_steady and largest.most > 1 else None


def _incast_of(run: RunFacts, host: str, flows: list[FlowRecord]) -> _Incast:
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
    return _Incast(host, tuple(flows), most, lasts_ns)
