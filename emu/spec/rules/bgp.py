"""Rules for BGP as the control plane."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from emu.spec.bgp import Bgp
from emu.spec.diagnostic import Diagnostic, unknown_name
from emu.spec.rules.provenance import for_switch
from emu.spec.scenario import Spec

_GENERATED_FROM = Bgp.model_fields.keys() - {"frr_conf", "local_repair"}
"""The fields that a frr.conf of the user's own replaces."""


def all_switches_have_one_control_plane(spec: Spec) -> Iterator[Diagnostic]:
    kinds = {name: spec.switch(name).routing.control_plane for name in spec.topology.build().switch}
    first = next(iter(kinds))
    for name, kind in kinds.items():
        if kind != kinds[first]:
            yield Diagnostic(
                for_switch(spec, name, "routing", "control_plane"),
                f"{name} has {kind}, and {first} has {kinds[first]}; give all switches the same",
                about=(for_switch(spec, first, "routing", "control_plane"),),
            )
            return


def bgp_is_ethernets(spec: Spec) -> Iterator[Diagnostic]:
    for name in spec.topology.build().switch:
        if spec.fabric_kind.is_ethernet or spec.switch(name).routing.control_plane == "static":
            continue
        yield Diagnostic(
            for_switch(spec, name, "routing", "control_plane"),
            "InfiniBand's control plane is the subnet manager (subnet); take it out, or use "
            "fabric: roce",
            about=(("fabric",),),
            idle_if_inherited=True,
        )


def bgp_settings_are_used(spec: Spec) -> Iterator[Diagnostic]:
    for name in spec.topology.build().switch:
        routing = spec.switch(name).routing
        if "bgp" in routing.model_fields_set and routing.control_plane == "static":
            yield Diagnostic(
                for_switch(spec, name, "routing", "bgp"),
                "has no effect with control_plane: static; use control_plane: bgp, or take it out",
                about=(for_switch(spec, name, "routing", "control_plane"),),
                idle_if_inherited=True,
            )
        if routing.bgp.frr_conf is None:
            continue
        own = for_switch(spec, name, "routing", "bgp", "frr_conf")
        for field in sorted(routing.bgp.model_fields_set & _GENERATED_FROM):
            key = for_switch(spec, name, "routing", "bgp", Bgp.model_fields[field].alias or field)
            if key[:-1] == own[:-1]:  # what all switches have is for the others
                yield Diagnostic(
                    key,
                    f"has no effect on {name}, whose frr_conf replaces the generated "
                    "configuration; write it there, or take it out",
                    about=(own,),
                )


def sessions_that_are_shut_down_exist(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    for name in topology.switch:
        near = [far for far in topology.neighbours[name] if far in topology.switch]
        for far in spec.switch(name).routing.bgp.shutdown:
            if far not in near:
                yield Diagnostic(
                    for_switch(spec, name, "routing", "bgp", "shutdown"),
                    unknown_name(f"switch with a cable to {name}", far, near),
                    about=(("topology",),),
                )


def own_configurations_can_be_read(spec: Spec) -> Iterator[Diagnostic]:
    for name in spec.topology.build().switch:
        file = spec.switch(name).routing.bgp.frr_conf
        if file is not None and not Path(file).is_file():
            yield Diagnostic(
                for_switch(spec, name, "routing", "bgp", "frr_conf"),
                f"there is no file {Path(file).name}; name the frr.conf of {name}, relative to the "
                "spec's folder",
            )


def recorded_routes_are_used(spec: Spec) -> Iterator[Diagnostic]:
    if spec.recorded_routes is None:
        return
    if not Path(spec.recorded_routes).is_file():
        yield Diagnostic(
            ("recorded_routes",),
            f"there is no file {Path(spec.recorded_routes).name}; leave it out, and emu records "
            "the routes",
        )
    elif not spec.has_bgp:
        yield Diagnostic(
            ("recorded_routes",),
            "has no effect without control_plane: bgp; take it out",
            about=(("switches", "routing", "control_plane"),),
            idle_if_inherited=True,
        )


RULES = (
    all_switches_have_one_control_plane,
    bgp_is_ethernets,
    bgp_settings_are_used,
    sessions_that_are_shut_down_exist,
    own_configurations_can_be_read,
    recorded_routes_are_used,
)
