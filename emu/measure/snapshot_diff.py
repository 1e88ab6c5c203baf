"""Two snapshots of a running lab -> the events between them.

A counter gives the number of increments and not their times. Its event has the time of the second
snapshot and a `count`. Faults have their own times; a fault that is both set and cleared between
the snapshots leaves no event.

Events are ordered by time, and a cause comes before its effect. A cause that only the second
snapshot shows gets a time no later than its effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from emu.measure.counter_table import NIC, PORT
from emu.measure.lab_snapshot import FlowSnapshot, LabSnapshot, LinkChange, SeenFault, cause_of
from emu.measure.raw_counters import RawCounters
from emu.units import format_time_ns


@dataclass(frozen=True)
class Event:
    """`where` is a port, a host, a flow or nothing; `values`: further data of the event."""

    time_ns: int
    event: str
    where: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        text = " ".join(f"{key}={value}" for key, value in self.values.items())
        return f"{format_time_ns(self.time_ns):>10}  {self.event}  {self.where}  {text}"

    def to_json(self) -> dict[str, Any]:
        return {"time_ns": self.time_ns, "event": self.event, "where": self.where, **self.values}


_ALL = 0.95
"""A port that is paused for more than this share of the time between two snapshots counts as paused
throughout."""


def in_order(events: Iterable[Event]) -> list[Event]:
    """By time. Events of the same time keep their order."""
    return sorted(events, key=lambda event: event.time_ns)


def events_between(before: LabSnapshot, after: LabSnapshot) -> list[Event]:
    """By time. At the same time the order is: traffic, faults, links, deadlocks, ports, hosts."""
    return in_order(_events(before, after))


def _events(before: LabSnapshot, after: LabSnapshot) -> Iterator[Event]:
    yield from _traffic_events(before, after)
    yield from _fault_events(before, after)
    yield from _link_events(before, after)
    yield from _deadlock_events(before, after)
    for name, counters in after.ports.items():
        yield from _port_events(name, before.ports[name], counters, after.time_ns)
    anew = before.traffic.number != after.traffic.number
    yield from _flow_events({} if anew else before.flows, after)
    for host, own in after.hosts.items():
        earlier = {} if anew else before.hosts.get(host, {})
        for row in NIC.events:
            if count := own[row.name] - earlier.get(row.name, 0):
                yield Event(after.time_ns, row.event, host, {"count": count})


def _port_events(
    name: str, before: RawCounters, after: RawCounters, time_ns: int
) -> Iterator[Event]:
    for row in PORT.events:
        noun = "priority" if row.roce else "vl"
        for number, (was, now) in enumerate(zip(before[row.name], after[row.name], strict=True)):
            if now > was:
                where = {noun: number} if row.cells > 1 else {}
                yield Event(time_ns, row.event, name, {**where, "count": now - was})
    if waited_ps := sum(after["xmit_wait"]) - sum(before["xmit_wait"]):
        yield Event(time_ns, "waited-for-credit", name, {"ns": waited_ps // 1000})


def _traffic_events(earlier: LabSnapshot, later: LabSnapshot) -> Iterator[Event]:
    before, after, time_ns = earlier.traffic, later.traffic, later.time_ns
    if after.number != before.number:
        started_ns = min([time_ns, *_begun_with_traffic(earlier, later)])
        yield Event(started_ns, "traffic-started", "", {"number": after.number})
    changed = (after.number, after.state) != (before.number, before.state)
    if changed and after.state == "failed":
        yield Event(time_ns, "traffic-failed", "", {"number": after.number, "why": after.error})
    if changed and after.state in ("over", "stopped"):
        values = {"number": after.number, "fidelity": after.verdict}
        yield Event(time_ns, f"traffic-{after.state}", "", values)
        times = ("start_ns", "end_ns") if after.verdict == "ok" else ()
        for flow in after.flows:
            outcome = "flow-completed" if flow["completed"] else "flow-failed"
            values = {key: flow[key] for key in ("src", "dst", "bytes", *times)}
            yield Event(time_ns, outcome, flow["name"], values)


def _begun_with_traffic(before: LabSnapshot, after: LabSnapshot) -> Iterator[int]:
    """When NIC faults began. They begin with the traffic."""
    for fault in after.faults:
        at_ns = -1 if fault.at_ns is None else fault.at_ns
        if at_ns > _moment_ns(before) and fault.place in after.hosts:
            yield at_ns


def _moment_ns(snapshot: LabSnapshot) -> int:
    """The latest time in a snapshot: links and faults are read after the counters."""
    return max(snapshot.time_ns, *(change.at_ns for change in snapshot.links[-1:]), 0)


def _fault_events(before: LabSnapshot, after: LabSnapshot) -> Iterator[Event]:
    """A fault that begins anew, as NIC faults of the spec do with each workload, is a new fault.

    A fault that waits for NICs has an event when it is set; others have one when they begin.
    """
    then, now = (
        {(fault.name, fault.at_ns): fault for fault in snapshot.faults}
        for snapshot in (before, after)
    )
    known, kept = ({name for name, _ in faults} for faults in (then, now))
    moment_ns = _moment_ns(after)
    for one, fault in {**then, **now}.items():
        values = {"kind": fault.kind, "place": fault.place}
        since_ns = _moment_ns(before) if one in then else -1
        if fault.name not in known and fault.at_ns is None:
            yield Event(after.time_ns, "fault-set", fault.name, values)
        begun = fault.at_ns is not None and fault.at_ns <= moment_ns
        if fault.at_ns is not None and since_ns < fault.at_ns <= moment_ns:
            yield Event(fault.at_ns, "fault-began", fault.name, values)
        if fault.end_ns is not None and fault.end_ns <= moment_ns:
            if since_ns < fault.end_ns:
                yield Event(fault.end_ns, "fault-over", fault.name, values)
        elif fault.name not in kept:
            yield Event(_cleared_ns(fault, before, after), "fault-cleared", fault.name, values)
        elif begun and one not in now:
            yield Event(after.time_ns, "fault-over", fault.name, values)


def _cleared_ns(fault: SeenFault, before: LabSnapshot, after: LabSnapshot) -> int:
    """The time a fault was cleared: no later than the return of its links."""
    back_ns = [
        change.at_ns
        for earlier, change in pairwise((*before.links[-1:], *_new_links(before, after)))
        if set(fault.cables) & (set(earlier.down) - set(change.down))
    ]
    return back_ns[-1] if back_ns else _moment_ns(after)


def _new_links(before: LabSnapshot, after: LabSnapshot) -> Iterator[LinkChange]:
    known_ns = before.links[-1].at_ns if before.links else -1
    return (change for change in after.links if change.at_ns > known_ns)


def _link_events(before: LabSnapshot, after: LabSnapshot) -> Iterator[Event]:
    """Links that went down or came up, by which fault, and when the routes converged.

    A fault on a link that is already down changes no routes.
    """
    new = {change.at_ns for change in _new_links(before, after)}
    followed = {change.at_ns for change in before.links if _follows(change, before.time_ns)}
    for earlier, change in pairwise((LinkChange(-1, (), None), *after.links)):
        lost = sorted(set(change.down) - set(earlier.down))
        back = sorted(set(earlier.down) - set(change.down))
        if change.at_ns in new:
            for cable in lost:
                yield Event(change.at_ns, "link-down", cable, {"cause": cause_of(after, cable)})
            for cable in back:
                ended = f"{cause_of(before, cable)} is over"
                yield Event(change.at_ns, "link-up", cable, {"cause": ended})
        changes_routes = bool(lost or back)
        if changes_routes and change.at_ns not in followed and _follows(change, after.time_ns):
            assert change.in_force_ns is not None
            cause = [*(f"{cable} down" for cable in lost), *(f"{cable} up" for cable in back)]
            values = {"cause": ", ".join(cause), "change_ns": change.at_ns}
            yield Event(change.in_force_ns, "routes-converged", "", values)


def _follows(change: LinkChange, now_ns: int) -> bool:
    return change.in_force_ns is not None and change.in_force_ns <= now_ns


def _deadlock_events(before: LabSnapshot, after: LabSnapshot) -> Iterator[Event]:
    for deadlock in after.deadlocks[len(before.deadlocks) :]:
        values = {"priority": deadlock.priority, "ports": " ".join(deadlock.ports)}
        yield Event(deadlock.found_ns, "deadlock", "", values)


def _flow_events(before: Mapping[str, FlowSnapshot], after: LabSnapshot) -> Iterator[Event]:
    for name, flow in after.flows.items():
        if flow.status and not (name in before and before[name].status):
            values = {"status": flow.status, "delivered": flow.delivered, "bytes": flow.bytes}
            yield Event(after.time_ns, "queue-pair-failed", name, values)


class Pauses:
    """Ports that are paused throughout the time between two snapshots.

    If a host pauses the port, that is a pause storm. If a switch does, congestion may be spreading.
    """

    def __init__(self, peers: Mapping[str, str], hosts: Collection[str]) -> None:
        """`peers`: switch port -> the node at the other end."""
        self._peers = peers
        self._hosts = hosts
        self._since_ns: dict[tuple[str, int], int] = {}

    def events(self, before: LabSnapshot, after: LabSnapshot) -> Iterator[Event]:
        """Starts and ends of such pauses, at the time of the second snapshot."""
        elapsed_ps = (after.time_ns - before.time_ns) * 1000
        if elapsed_ps <= 0:
            return
        for name, own in after.ports.items():
            durations = zip(
                before.ports[name]["rx_pause_duration"], own["rx_pause_duration"], strict=True
            )
            for priority, (was, now) in enumerate(durations):
                yield from self._change(name, priority, now - was > _ALL * elapsed_ps, after)

    def _change(
        self, port: str, priority: int, is_paused: bool, snapshot: LabSnapshot
    ) -> Iterator[Event]:
        place = port, priority
        if is_paused == (place in self._since_ns):
            return
        by = self._peers[port]
        kind = "pause-storm" if by in self._hosts else "standing-pause"
        values: dict[str, Any] = {"priority": priority, "by": by}
        if is_paused:
            self._since_ns[place] = snapshot.time_ns
            yield Event(snapshot.time_ns, f"{kind}-began", port, values)
        else:
            values["ns"] = snapshot.time_ns - self._since_ns.pop(place)
            yield Event(snapshot.time_ns, f"{kind}-ended", port, values)
