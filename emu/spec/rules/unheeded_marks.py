"""Switches that mark packets of senders none of which has congestion control.

    sender ──▶ switch marks CE ──▶ receiver ──▶ CNP, or BECN in an ACK ──▶ sender
    cc: none                       sends none                               is never slowed

With cc: swift nobody heeds marks either, and needs none: it goes by the round trip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from emu.spec.rules.idle_controls import marks, on_the_way
from emu.spec.scenario import Spec
from topologies.graph import Port
from traffic.graph import Flow


def unheeded_marks(spec: Spec) -> Iterator[str]:
    """One sentence, where packets may be marked and no sender of such packets has a control."""
    if any(spec.by_tcp(entry) for entry in spec.traffic):
        return
    flows = spec.fabric_flows()
    if not _any_port_marks(spec, flows):
        return
    if any(_heeds(spec, flow) and _marked_at(spec, flow) for flow in flows):
        return
    for flow in flows:
        if not _heeds(spec, flow) and (port := _marked_at(spec, flow)):
            where, priority = spec.topology.build().port_name[port], _priority(spec, flow)
            lane = f" of priority {priority}" if spec.fabric_kind.is_ethernet else ""
            key, cc = ("ecn", "dcqcn-nvidia") if spec.fabric_kind.is_ethernet else ("fecn", "cct")
            yield (
                f"{flow.traffic}: {where} marks packets{lane} (switches.{key}), and no sender "
                f"slows down for it ({flow.bytes_from} has cc: none, as all have whose packets "
                f"may be marked); set hosts.nic.cc={cc}, or switches.{key}=off"
            )
            return


def _any_port_marks(spec: Spec, flows: Iterable[Flow]) -> bool:
    """Whether any port marks what hosts send, be it on their way or not."""
    topology = spec.topology.build()
    asked = {(flow.bytes_from, flow.priority) for flow in flows}
    priorities = {spec.priority(host, priority) for host, priority in asked}
    ports = (port for name in topology.switch for port in topology.ports[name])
    return any(marks(spec, port, priority) for port in ports for priority in priorities)


def _heeds(spec: Spec, flow: Flow) -> bool:
    """Whether its sender has a control, be it one that goes by delay."""
    return spec.host(flow.bytes_from).nic.cc != "none"


def _marked_at(spec: Spec, flow: Flow) -> Port | None:
    """The first port of a switch that may mark a flow's packets."""
    if spec.fabric_kind.is_ethernet and not spec.host(flow.bytes_from).nic.ecn:
        return None
    priority = _priority(spec, flow)
    return next((port for port in on_the_way(spec, flow) if marks(spec, port, priority)), None)


def _priority(spec: Spec, flow: Flow) -> int:
    return spec.priority(flow.bytes_from, flow.priority)
