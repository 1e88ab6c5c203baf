"""The settings in effect, as the drafts' reports must hold them: all of switches and of hosts.

They are the values of `emu explain KEY --spec FILE`, with defaults and derived thresholds. Settings
without effect are left out: those of the other kind of fabric, those of congestion controls that no
host uses, and those that are not given and have no default.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu.explain.in_force import Value, values_in_force
from emu.fabric_kind import Framing
from emu.spec.congestion_control import CONTROLS
from emu.spec.scenario import Spec

_OF_OTHERS = {
    Framing.ETHERNET: (
        *("switches.credits", "switches.fecn", "switches.routing.sls"),
        *("hosts.nic.sl", "hosts.nic.global_route"),
    ),
    Framing.INFINIBAND: (
        *("switches.classes", "switches.pfc", "switches.ecn", "switches.watchdog"),
        *("switches.pause_response", "switches.scheduling", "switches.alpha"),
        *("switches.reserved", "switches.queue_limit", "switches.buffer"),
        *("hosts.nic.dscp", "hosts.nic.cnp_dscp", "hosts.nic.ack_dscp", "hosts.nic.vlan"),
        *("hosts.nic.ecn", "hosts.nic.pause_response"),
    ),
}
"""Sections that have no effect on a framing."""
_OF_PORTS = ("classes", "pfc", "ecn", "fecn", "pause_response")
"""The sections of `switches` whose derived values are known by port."""
_NOTHING = ("not given", "{}", "[]")


def switch_settings(spec: Spec) -> list[Value]:
    """QoS, PFC, ECN, credits, routing and buffers of the switches; on InfiniBand also the subnet
    manager's settings."""
    sections = [f"switches.{name}" for name in _OF_PORTS]
    values = [value for section in sections for value in _in_effect(spec, section)]
    values += [v for v in _in_effect(spec, "switches") if not _is_below(v.key, sections)]
    return values if spec.fabric_kind.is_ethernet else [*values, *_in_effect(spec, "subnet")]


def host_settings(spec: Spec) -> list[Value]:
    """The host stack: NIC, transport, congestion control, path to memory."""
    sections = ["hosts.nic", "hosts.path", "hosts.stack", "hosts.cpu", "hosts.gpus"]
    if spec.scale_up is not None:
        sections.append("hosts.scale_up")
    return [value for section in sections for value in _in_effect(spec, section)]


def _in_effect(spec: Spec, section: str) -> list[Value]:
    """The values of a section that have an effect, in the order of the keys."""
    idle = [*_OF_OTHERS[spec.fabric_kind.framing], *_unused_controls(spec), *_unused_gap(spec)]
    if _is_below(section, idle):
        return []
    return [
        value
        for value in values_in_force(spec, section)
        if value.value not in _NOTHING and not _is_below(value.key, idle)
    ]


def _unused_controls(spec: Spec) -> list[str]:
    """The sections of congestion controls that no host uses."""
    used = {spec.host(name).nic.cc for name in spec.topology.build().host}
    unused = (entry.key for name, entry in CONTROLS.items() if name not in used)
    return [f"hosts.nic.{key}" for key in unused if key is not None]


def _unused_gap(spec: Spec) -> list[str]:
    """The gap between flowlets, if no switch has flowlets."""
    kinds = {spec.switch(name).routing.kind for name in spec.topology.build().switch}
    return [] if "flowlet" in kinds else ["switches.routing.gap"]


def _is_below(key: str, sections: Sequence[str]) -> bool:
    return any(key == section or key.startswith(f"{section}.") for section in sections)
