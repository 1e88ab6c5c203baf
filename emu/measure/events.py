"""What has happened in a running lab between two looks at it.

Counters say how often, not when: an event's time is that of the second look, and
what happened several times in between is one event with a `count`. Of faults it is known when
they begin and end, and of those that are both set and cleared in between, nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from emu.measure.counters import RawCounters
from emu.measure.look import FlowLook, LinkChange, Look, TrafficState, cause_of
from emu.units import format_time_ns


@dataclass(frozen=True)
class Event:
    """`where` is a port, a host, a flow or nothing; `values` what there is to say beside it."""

    time_ns: int
    event: str
    where: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        told = " ".join(f"{key}={value}" for key, value in self.values.items())
        return f"{format_time_ns(self.time_ns):>10}  {self.event}  {self.where}  {told}"

    def to_json(self) -> dict[str, Any]:
        return {"time_ns": self.time_ns, "event": self.event, "where": self.where, **self.values}


_PER_CLASS = {
    "pause-sent": ("tx_pause", "priority"),
    "paused": ("rx_pause", "priority"),
    "marked": ("ecn_marked", "priority"),
    "dropped-at-ingress": ("rx_buf_discard", "priority"),
    "dropped-at-egress": ("tx_queue_discard", "priority"),
    "fecn-marked": ("fecn_marked", "vl"),
    "watchdog-detected-storm": ("watchdog_detected", "priority"),
    "watchdog-restored": ("watchdog_restored", "priority"),
    "dropped-by-watchdog-at-ingress": ("watchdog_rx_dropped", "priority"),
    "dropped-by-watchdog-at-egress": ("watchdog_tx_dropped", "priority"),
}
"""Event -> a port's counter with one cell for each class, and what a class is called."""

_WHOLE = {
    "dropped-with-the-link": "link_down_discard",
    "dropped-at-head-of-queue": "hoq_discard",
    "dropped-on-vl15": "vl15_dropped",
    "refused-at-ingress": "rcv_constraint_errors",
    "refused-at-egress": "xmit_constraint_errors",
    "no-route": "no_route",
    "no-lane": "no_lane",
    "ttl-expired": "ttl_expired",
    "not-ip": "not_ip",
    "malformed": "rx_malformed",
    "oversize": "rx_oversize",
    "damaged": "rx_crc_errors",
    "dropped-as-damaged": "corrupt",
    "credit-violation": "rx_credit_violations",
    "lost-in-open-vswitch": "transit_lost",
}
_OF_HOST = {
    "cnp-sent": "np_cnp_sent",
    "cnp-received": "rp_cnp_handled",
    "out-of-sequence": "out_of_sequence",
    "retransmitted": "retransmitted_packets",
    "timeout": "local_ack_timeout_err",
}

_ALL = 0.95
"""Part of the time between two looks: a port that is paused for more was not let go."""


def events_between(before: Look, after: Look) -> Iterator[Event]:
    """In order: of the traffic, of faults, links and deadlocks, of ports, of hosts."""
    yield from _traffic_events(before.traffic, after.traffic, after.time_ns)
    yield from _fault_events(before, after)
    yield from _link_events(before, after)
    yield from _deadlock_events(before, after)
    for name, counters in after.ports.items():
        yield from _port_events(name, before.ports[name], counters, after.time_ns)
    anew = before.traffic.number != after.traffic.number
    yield from _flow_events({} if anew else before.flows, after)
    for host, own in after.hosts.items():
        earlier = {} if anew else before.hosts.get(host, {})
        for event, counter in _OF_HOST.items():
            if count := own[counter] - earlier.get(counter, 0):
                yield Event(after.time_ns, event, host, {"count": count})


def _port_events(
    name: str, before: RawCounters, after: RawCounters, time_ns: int
) -> Iterator[Event]:
    for event, (counter, noun) in _PER_CLASS.items():
        for number, (was, now) in enumerate(zip(before[counter], after[counter], strict=True)):
            if now > was:
                yield Event(time_ns, event, name, {noun: number, "count": now - was})
    for event, counter in _WHOLE.items():
        if count := after[counter][0] - before[counter][0]:
            yield Event(time_ns, event, name, {"count": count})
    if waited_ps := sum(after["xmit_wait"]) - sum(before["xmit_wait"]):
        yield Event(time_ns, "waited-for-credit", name, {"ns": waited_ps // 1000})


def _traffic_events(before: TrafficState, after: TrafficState, time_ns: int) -> Iterator[Event]:
    if after.number != before.number:
        yield Event(time_ns, "traffic-started", "", {"number": after.number})
    changed = (after.number, after.state) != (before.number, before.state)
    if changed and after.state == "failed":
        yield Event(time_ns, "traffic-failed", "", {"number": after.number, "why": after.error})
    if changed and after.state in ("over", "stopped"):
        told = {"number": after.number, "fidelity": after.verdict}
        yield Event(time_ns, f"traffic-{after.state}", "", told)
        times = ("start_ns", "end_ns") if after.verdict == "ok" else ()
        for flow in after.flows:
            outcome = "flow-completed" if flow["completed"] else "flow-failed"
            told = {key: flow[key] for key in ("src", "dst", "bytes", *times)}
            yield Event(time_ns, outcome, flow["name"], told)


def _fault_events(before: Look, after: Look) -> Iterator[Event]:
    """A fault that begins anew, as the spec's of NICs do with every workload, is another one.

    One that waits for NICs is told of when it is set, others when they begin.
    """
    then, now = (
        {(fault.name, fault.at_ns): fault for fault in look.faults} for look in (before, after)
    )
    known, kept = ({name for name, _ in faults} for faults in (then, now))
    for one, fault in {**then, **now}.items():
        told = {"kind": fault.kind, "place": fault.place}
        since_ns = before.time_ns if one in then else -1
        if fault.name not in known and fault.at_ns is None:
            yield Event(after.time_ns, "fault-set", fault.name, told)
        begun = fault.at_ns is not None and fault.at_ns <= after.time_ns
        if fault.at_ns is not None and since_ns < fault.at_ns <= after.time_ns:
            yield Event(fault.at_ns, "fault-began", fault.name, told)
        if fault.end_ns is not None and fault.end_ns <= after.time_ns:
            if since_ns < fault.end_ns:
                yield Event(fault.end_ns, "fault-over", fault.name, told)
        elif fault.name not in kept:
            yield Event(after.time_ns, "fault-cleared", fault.name, told)
        elif begun and one not in now:
            yield Event(after.time_ns, "fault-over", fault.name, told)


def _link_events(before: Look, after: Look) -> Iterator[Event]:
    """What was lost or came back, by which fault, and when routes followed."""
    known_ns = before.links[-1].at_ns if before.links else -1
    followed = {change.at_ns for change in before.links if _follows(change, before.time_ns)}
    for earlier, change in pairwise((LinkChange(-1, (), None), *after.links)):
        lost = sorted(set(change.down) - set(earlier.down))
        back = sorted(set(earlier.down) - set(change.down))
        if change.at_ns > known_ns:
            for cable in lost:
                yield Event(change.at_ns, "link-down", cable, {"cause": cause_of(after, cable)})
            for cable in back:
                ended = f"{cause_of(before, cable)} is over"
                yield Event(change.at_ns, "link-up", cable, {"cause": ended})
        if change.at_ns not in followed and _follows(change, after.time_ns):
            assert change.in_force_ns is not None
            cause = [*(f"{cable} down" for cable in lost), *(f"{cable} up" for cable in back)]
            told = {"cause": ", ".join(cause), "change_ns": change.at_ns}
            yield Event(change.in_force_ns, "routes-converged", "", told)


def _follows(change: LinkChange, now_ns: int) -> bool:
    return change.in_force_ns is not None and change.in_force_ns <= now_ns


def _deadlock_events(before: Look, after: Look) -> Iterator[Event]:
    for deadlock in after.deadlocks[len(before.deadlocks) :]:
        told = {"priority": deadlock.priority, "ports": " ".join(deadlock.ports)}
        yield Event(deadlock.found_ns, "deadlock", "", told)


def _flow_events(before: Mapping[str, FlowLook], after: Look) -> Iterator[Event]:
    for name, flow in after.flows.items():
        if flow.status and not (name in before and before[name].status):
            told = {"status": flow.status, "delivered": flow.delivered, "bytes": flow.bytes}
            yield Event(after.time_ns, "queue-pair-failed", name, told)


class Pauses:
    """Which ports are paused without a break, from one look to the next.

    A host that does it is a pause storm; of a switch it may be congestion that spreads.
    """

    def __init__(self, peers: Mapping[str, str], hosts: Collection[str]) -> None:
        """`peers`: switch port -> the node at the other end."""
        self._peers = peers
        self._hosts = hosts
        self._since_ns: dict[tuple[str, int], int] = {}

    def events(self, before: Look, after: Look) -> Iterator[Event]:
        """Begins and ends, at the time of the look that shows them."""
        elapsed_ps = (after.time_ns - before.time_ns) * 1000
        if elapsed_ps <= 0:
            return
        for name, own in after.ports.items():
            durations = zip(
                before.ports[name]["rx_pause_duration"], own["rx_pause_duration"], strict=True
            )
            for priority, (was, now) in enumerate(durations):
                yield from self._change(name, priority, now - was > _ALL * elapsed_ps, after)

    def _change(self, port: str, priority: int, is_paused: bool, look: Look) -> Iterator[Event]:
        place = port, priority
        if is_paused == (place in self._since_ns):
            return
        by = self._peers[port]
        kind = "pause-storm" if by in self._hosts else "standing-pause"
        told: dict[str, Any] = {"priority": priority, "by": by}
        if is_paused:
            self._since_ns[place] = look.time_ns
            yield Event(look.time_ns, f"{kind}-began", port, told)
        else:
            told["ns"] = look.time_ns - self._since_ns.pop(place)
            yield Event(look.time_ns, f"{kind}-ended", port, told)
