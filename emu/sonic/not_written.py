"""Keys of switches that a spec gives, and that CONFIG_DB has no field for."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.base import Model
from emu.spec.scenario import Spec
from emu.spec.switch import SwitchSpec

_WITHOUT = {
    "latency_given": "CONFIG_DB has no latency",
    "switching": "CONFIG_DB does not say how a switch forwards",
    "credits": "SONiC's switches have no credits",
    "fecn": "SONiC's switches mark by ECN",
    "pause_response_ps": "CONFIG_DB has no response time",
    "routing": "CONFIG_DB has no fields for these keys",
}
"""Fields of a switch -> why no row is written for them."""


def keys_without_a_table(spec: Spec, switch: str) -> Iterator[str]:
    """A line for each key that is given for the switch, or for one of its ports."""
    given = spec.given_switch(switch)
    ports = [spec.given_port(port) for port in spec.topology.build().ports[switch]]
    for field, why in _WITHOUT.items():
        if any(field in own.model_fields_set and _says(own, field) for own in (given, *ports)):
            key = SwitchSpec.model_fields[field].alias or field
            yield f"switches.{key}: not written: {why}"
    if any(own.pfc is not None and own.pfc.frames == "pause" for own in ports):
        yield "switches.pfc.frames: not written: SONiC pauses by PFC alone"


def _says(settings: SwitchSpec, field: str) -> bool:
    """Whether a field has another value than by default; BGP's own keys aside."""
    value, default = getattr(settings, field), SwitchSpec.model_fields[field].default
    if field == "routing" and isinstance(value, Model):
        keys = value.model_fields_set - {"control_plane", "bgp"}
        return bool(keys)
    return bool(value != default)
