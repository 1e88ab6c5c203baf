"""Rules for the paths of packets, and for links that are lost and return."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.diagnostic import Diagnostic, unknown_name
from emu.spec.fault.kinds.link_flap import LinkFlap
from emu.spec.outages import times_down
from emu.spec.pinning import lies_between
from emu.spec.rerouting import MAX_HINTED_PORTS, is_hinted, reroutings
from emu.spec.routing import PACKET_KINDS, Routing
from emu.spec.rules.provenance import for_switch
from emu.spec.scenario import Spec

MAX_LOSSES = 1000
"""The most losses of a link in one run, since each changes the routes of many switches."""


def routing_keys_are_used(spec: Spec) -> Iterator[Diagnostic]:
    """A setting of all switches is used if at least one of them uses it."""
    routings = {name: spec.switch(name).routing for name in spec.topology.build().switch}
    kinds = {routing.kind for routing in routings.values()}
    for key, field, kind in (("gap", "gap_ps", "flowlet"), ("paths", "paths", "pinned")):
        for name, routing in routings.items():
            if kind not in kinds and field in routing.model_fields_set:
                yield Diagnostic(
                    for_switch(spec, name, "routing", key),
                    f"only kind: {kind} uses it, and no switch has that kind; choose it, or take "
                    "this out",
                    about=(for_switch(spec, name, "routing", "kind"),),
                )


def service_levels_are_infinibands(spec: Spec) -> Iterator[Diagnostic]:
    for name in spec.topology.build().switch:
        routing = spec.switch(name).routing
        if routing.sls is None:
            continue
        path = for_switch(spec, name, "routing", "sls")
        if spec.fabric_kind.is_ethernet:
            text = "RoCE packets have no service level; take it out, or use fabric: ib"
            yield Diagnostic(path, text, about=(("fabric",),), idle_if_inherited=True)
        elif routing.kind not in PACKET_KINDS:
            text = f"has no effect with kind: {routing.kind}; use spray or adaptive"
            yield Diagnostic(path, text, about=(for_switch(spec, name, "routing", "kind"),))


def pinned_switches_have_paths(spec: Spec) -> Iterator[Diagnostic]:
    for name in spec.topology.build().switch:
        routing = spec.switch(name).routing
        if routing.kind == "pinned" and not routing.paths:
            yield Diagnostic(
                for_switch(spec, name, "routing", "kind"),
                "no flow is pinned; name some in paths, or use kind: ecmp",
                about=(for_switch(spec, name, "routing", "paths"),),
            )


def infiniband_hashes_nothing(spec: Spec) -> Iterator[Diagnostic]:
    if not spec.fabric_kind.has_subnet_manager:
        return
    for name in spec.topology.build().switch:
        kind = spec.switch(name).routing.kind
        if kind not in ("ecmp", *PACKET_KINDS):
            yield Diagnostic(
                for_switch(spec, name, "routing", "kind"),
                "InfiniBand's switches route by destination, not by flow, so they do not "
                f"support {kind}; use spray or adaptive, or fabric: roce",
                about=(("fabric",),),
                idle_if_inherited=True,
            )


def pinned_flows_have_that_path(spec: Spec) -> Iterator[Diagnostic]:
    if spec.fabric_kind.has_subnet_manager:
        return
    topology = spec.topology.build()
    for name in topology.switch:
        for flow, via in _pinned(spec.switch(name).routing).items():
            ends = spec.flow_ends
            path = for_switch(spec, name, "routing", "paths", flow)
            about = (("traffic",), ("topology",))
            if flow not in ends:
                remedy = "" if ends else ", nor any other; use routing: {kind: ecmp}"
                text = unknown_name("flow called", flow, list(ends)) + remedy
                yield Diagnostic(path, text, about)
            elif via not in topology.switch:
                yield Diagnostic(path, unknown_name("switch", via, list(topology.switch)), about)
            elif not all(end in topology.host for end in ends[flow]):
                continue  # hosts_exist names them
            elif not lies_between(topology, ends[flow][0], via, ends[flow][1]):
                yield Diagnostic(
                    path,
                    f"no shortest path from {ends[flow][0]} to {ends[flow][1]} leads over {via}; "
                    "name a switch on such a path",
                    about,
                )


def _pinned(routing: Routing) -> dict[str, str]:
    return routing.paths if routing.kind == "pinned" else {}


def hints_name_a_port(spec: Spec) -> Iterator[Diagnostic]:
    """With Open vSwitch, the tag of a packet holds the port that the core has chosen."""
    topology = spec.topology.build()
    if spec.plane_in_use == "shim":
        return
    large = [name for name in topology.switch if len(topology.ports[name]) > MAX_HINTED_PORTS]
    every_change = reroutings(spec) if large else []
    for name in large:
        ports = len(topology.ports[name])
        changes = [change for change in every_change if change.switch == name]
        if is_hinted(spec, name, changes):
            yield Diagnostic(
                for_switch(spec, name, "routing", "kind"),
                f"{name} has {ports} ports; with this kind or with link faults, Open vSwitch "
                f"supports {MAX_HINTED_PORTS} ports at most; use plane: shim, or kind: ecmp "
                "and no link faults",
                about=(("plane",), ("topology",), ("faults",)),
            )


def links_are_not_lost_too_often(spec: Spec) -> Iterator[Diagnostic]:
    for index, fault in enumerate(spec.faults):
        if not isinstance(fault.what, LinkFlap):
            continue
        times = sum(1 for _ in times_down(fault, spec.time_limit_ps))
        if times > MAX_LOSSES:
            yield Diagnostic(
                ("faults", index, fault.kind, "period"),
                f"the link would be lost {times} times; {MAX_LOSSES} is the most, so lengthen "
                "period, or give for",
                about=(("faults", index), ("time_limit",)),
            )


ON_THE_GRAPH = (
    routing_keys_are_used,
    service_levels_are_infinibands,
    pinned_switches_have_paths,
    infiniband_hashes_nothing,
    hints_name_a_port,
    links_are_not_lost_too_often,
)
ON_THE_FLOWS = (pinned_flows_have_that_path,)
