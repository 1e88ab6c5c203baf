"""Events of a lab as syslog messages of its hosts and switches (RFC 5424).

    <131>1 2026-11-27T10:59:01.250000Z leaf1 emu - link-down [emu@32473 where="leaf1:spine1"
    time_ns="4000"] link-down leaf1:spine1 cause=the fault link-down-1

Only what a device would log is logged: links, storms, losses and errors. Pauses, marks and CNPs are
how a fabric works; counters have them. 32473 is the enterprise number for examples (RFC 5612).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import IntEnum

from emu.measure.snapshot_diff import Event
from topologies.graph import Topology


class Severity(IntEnum):
    """RFC 5424, 6.2.1."""

    ERROR = 3
    WARNING = 4
    NOTICE = 5


_ERRORS = ("link-down", "pause-storm-began", "watchdog-detected-storm", "credit-violation")
_WARNINGS = (
    *("standing-pause-began", "timeout", "dropped-at-ingress", "dropped-at-egress"),
    *("dropped-by-watchdog-at-egress", "dropped-by-watchdog-at-ingress"),
    *(
        "dropped-on-vl15",
        "dropped-at-head-of-queue",
        "dropped-with-the-link",
        "dropped-as-damaged",
        "damaged",
    ),
    *("no-lane", "no-route", "ttl-expired", "not-ip", "malformed", "oversize"),
    *("refused-at-ingress", "refused-at-egress", "wrong-vlan", "other-vlan"),
)
_NOTICES = ("link-up", "pause-storm-ended", "standing-pause-ended", "watchdog-restored")
SEVERITIES = {
    **dict.fromkeys(_ERRORS, Severity.ERROR),
    **dict.fromkeys(_WARNINGS, Severity.WARNING),
    **dict.fromkeys(_NOTICES, Severity.NOTICE),
}
"""Event -> its severity; others are not logged."""
_OF_BOTH_ENDS = ("link-down", "link-up")
_LOCAL0 = 16
_ESCAPED = str.maketrans({'"': '\\"', "\\": "\\\\", "]": "\\]"})


def nodes_of(event: Event, topology: Topology) -> Iterator[str]:
    """The hosts and switches that log an event: of a link, those at both ends."""
    if event.event not in SEVERITIES:
        return
    if event.where in topology.host:
        yield event.where
    elif event.where in topology.port_named:
        port = topology.port_named[event.where]
        yield port.node
        if event.event in _OF_BOTH_ENDS:
            yield topology.peer[port].node


def message_of(event: Event, node: str, now: datetime) -> bytes:
    """The message of a node. `now`: the real time, in UTC."""
    priority = 8 * _LOCAL0 + SEVERITIES[event.event]
    time = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    data = {"where": event.where, "time_ns": event.time_ns, **event.values}
    fields = " ".join(f'{key}="{str(value).translate(_ESCAPED)}"' for key, value in data.items())
    values = "".join(f" {key}={value}" for key, value in event.values.items())
    head = f"<{priority}>1 {time} {node} emu - {event.event} [emu@32473 {fields}]"
    return f"{head} {event.event} {event.where}{values}".encode()
