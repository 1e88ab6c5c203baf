"""Switches that mark packets although no sender of such packets has congestion control.

    sender ──▶ switch marks CE ──▶ receiver ──▶ CNP, or BECN in an ACK ──▶ sender
    cc: none                       sends none                               is never slowed

With cc: swift, senders ignore marks too, but do not need them: Swift uses the round-trip time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from emu.spec.rules.idle_controls import marks, on_the_way
from emu.spec.scenario import Spec
from topologies.graph import Port
from traffic.graph import Flow


def unheeded_marks(spec: Spec) -> Iterator[str]:
    """A warning if packets may be marked and no sender of such packets has congestion control."""
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
                f"{flow.traffic}: {where} marks packets{lane} (switches.{key}), but no sender "
                f"reacts ({flow.bytes_from} and all other senders of such packets have cc: "
                f"none); set hosts.nic.cc={cc}, or switches.{key}=off"
            )
            return


def _any_port_marks(spec: Spec, flows: Iterable[Flow]) -> bool:
    """Whether any port, on the flows' paths or not, marks packets of the flows' priorities."""
    topology = spec.topology.build()
    asked = {(flow.bytes_from, flow.priority) for flow in flows}
    priorities = {spec.priority(host, priority) for host, priority in asked}
    ports = (port for name in topology.switch for port in topology.ports[name])
    return any(marks(spec, port, priority) for port in ports for priority in priorities)


def _heeds(spec: Spec, flow: Flow) -> bool:
    """Whether the sender of a flow has a congestion control, by marks or by delay."""
    return spec.host(flow.bytes_from).nic.cc != "none"


def _marked_at(spec: Spec, flow: Flow) -> Port | None:
    """The first port of a switch that may mark a flow's packets."""
    if spec.fabric_kind.is_ethernet and not spec.host(flow.bytes_from).nic.ecn:
        return None
    priority = _priority(spec, flow)
    return next((port for port in on_the_way(spec, flow) if marks(spec, port, priority)), None)


def _priority(spec: Spec, flow: Flow) -> int:
    return spec.priority(flow.bytes_from, flow.priority)
