"""Congestion controls that can never act, because no mark can reach them.

DCQCN, DCTCP and InfiniBand's congestion control table slow a flow down only when its packets are
marked. Without marks a run with such a control equals the run without it, packet by packet.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from emu.spec.scenario import Spec
from topologies.graph import Port
from traffic.graph import Flow


def idle_controls(spec: Spec) -> Iterator[str]:
    """A warning for each congestion control and each reason why it never acts."""
    idle: dict[tuple[str, str], list[str]] = {}
    for host, reason in unmarked(spec).items():
        if reason is not None:
            idle.setdefault((spec.host(host).nic.cc, reason), []).append(host)
    for (cc, reason), hosts in idle.items():
        more = f" and {len(hosts) - 1} more host{'s' if len(hosts) > 2 else ''}"
        who = f"{hosts[0]}{more} use" if len(hosts) > 1 else f"{hosts[0]} uses"
        yield f"{who} cc: {cc}, which acts on marks alone and never slows a flow here: {reason}"


def unmarked(spec: Spec) -> dict[str, str | None]:
    """Sender whose control acts on marks -> the reason why no mark reaches it; None: one may."""
    if not any(acts_on_marks(spec, host) for host in spec.topology.build().host):
        return {}
    reasons: dict[str, str | None] = {}
    for flow in spec.fabric_flows():
        host = flow.bytes_from
        if acts_on_marks(spec, host) and reasons.get(host, "unknown") is not None:
            reasons[host] = _why_unmarked(spec, flow)
    return reasons


def acts_on_marks(spec: Spec, host: str) -> bool:
    """Whether a host's congestion control reacts to marks."""
    nic = spec.host(host).nic
    return nic.control(nic.cc).becn.by != "none"


def _why_unmarked(spec: Spec, flow: Flow) -> str | None:
    """The reason why no mark slows a flow down, and the remedy; None: a mark may."""
    host = flow.bytes_from
    nic, priority = spec.host(host).nic, spec.priority(host, flow.priority)
    control = nic.control(nic.cc)
    without = "use hosts.nic.cc=swift, which acts on delay, or none"
    if spec.fabric_kind.is_ethernet and not control.is_on(priority):
        return control.why_off(priority)
    if spec.fabric_kind.is_ethernet and not nic.ecn:
        return "its packets are not ECN-capable; set hosts.nic.ecn=on"
    if any(marks(spec, port, priority) for port in on_the_way(spec, flow)):
        return None
    if not spec.fabric_kind.is_ethernet:
        return f"no switch on the path marks packets; set switches.fecn=on, or {without}"
    return (
        f"no switch on the path marks packets of priority {priority}; set switches.ecn=on, or "
        f"{without}"
    )


def marks(spec: Spec, port: Port, priority: int) -> bool:
    """Whether a switch's port may mark packets of a priority."""
    own = spec.given_port(port)
    if not spec.fabric_kind.is_ethernet:
        return own.fecn is not None
    return own.ecn is not None and own.ecn.curve(own.classes.queue_of(priority)) is not None


def on_the_way(spec: Spec, flow: Flow) -> Iterator[Port]:
    """The egress ports of switches on all shortest paths of a flow's packets."""
    topology = spec.topology.build()
    yield from chain(*topology.stages(flow.bytes_from, flow.bytes_to)[1:])
