"""The tuned settings in effect, and their values halved and doubled.

A setting is tuned if `emu tune` knows a range for it, or if it is one of _FURTHER. It is in effect
if the fabric uses it:

    Ethernet      ECN curves, PFC thresholds and headroom, alpha
    credits       the buffer of each lane, FECN, head-of-queue lifetimes
    NICs          the congestion control in use, if marks reach it; the retransmission timer

A value is the one in force: the user's, a preset's, or a default. Codes of times (`timeout: 14`
means 4.096 us times 2 to this power) go down or up by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from emu.sensitivities.change import Change, Kind, LeftOut
from emu.sensitivities.pinned import at_hosts, at_ports, at_switches
from emu.spec.base import Model
from emu.spec.congestion_control import CONTROLS
from emu.spec.flat import flat, written
from emu.spec.rules.idle_controls import unmarked
from emu.spec.scenario import Spec
from emu.spec.switch import SwitchSpec
from emu.sweeps.axes import in_words
from emu.sweeps.units import key_column
from emu.sweeps.values import scaled
from emu.tuning.ranges import has_range
from emu.words import shortened

FACTORS = {"x 1/2": 0.5, "x 2": 2.0}
_CODES = ("nic.timeout", "head_of_queue_lifetime")
"""Ends of keys whose values are powers of 2."""
_FURTHER = (
    "pfc.xon",
    "pfc.xon_offset",
    "pfc.headroom",
    "fecn.threshold",
    "fecn.marking_rate",
    "cct.ccti_increase",
    "cct.ccti_timer",
    "routing.gap",
    *_CODES,
)
"""Ends of keys that are tuned, but that have no range of `emu tune`."""
_LANES = "switches.credits.lanes."
"""Buffers of single lanes."""
_MOST_SHOWN = 3
"""Different values of a setting in a table."""

Put = Callable[..., dict[str, Any]]
"""Settings from a key (or none) and a value for each port, switch or host."""


@dataclass(frozen=True)
class Setting:
    """A tuned setting: its key, its values in force, and the keys that set them."""

    key: str
    values: Mapping[Any, Any]
    """Port, switch or host -> its value."""
    put: Put


def setting_changes(spec: Spec) -> Iterator[Change | LeftOut]:
    """Each tuned setting of a pinned spec, halved and doubled."""
    for setting in tuned_settings(spec):
        for name, factor in FACTORS.items():
            yield _changed(setting, name, factor)


def _changed(setting: Setting, name: str, factor: float) -> Change | LeftOut:
    title = f"{setting.key} {name}"
    after = {place: _times(setting.key, value, factor) for place, value in setting.values.items()}
    if after == setting.values:
        why = f"it is {_shown(setting.key, after)}, a whole number, and stays so"
        return LeftOut(title, Kind.SETTING, why)
    what = f"{_shown(setting.key, setting.values)} -> {_shown(setting.key, after)}"
    return Change(title, Kind.SETTING, what, setting.put(after))


def _times(key: str, value: Any, factor: float) -> Any:
    """A value halved or doubled."""
    if key.endswith(_CODES):
        return value + (1 if factor > 1 else -1)
    alpha = str(value).removeprefix("alpha ")
    if alpha != str(value):
        return f"alpha {float(alpha) * factor:g}"
    return scaled(value, factor)


def _shown(key: str, values: Mapping[Any, Any]) -> str:
    """The different values: `80 KB, 320 KB`."""
    different = list(dict.fromkeys(values.values()))
    column = key_column(key, different)
    return shortened([in_words(column, column.cell(own)) for own in different], _MOST_SHOWN)


def tuned_settings(spec: Spec) -> list[Setting]:
    """All tuned settings in effect, each once."""
    return [*_of_switches(spec), *_of_hosts(spec), *_of_subnet(spec)]


def _of_switches(spec: Spec) -> Iterator[Setting]:
    topology = spec.topology.build()
    ports = {port: spec.port(port) for port in topology.switch_ports}
    of_port = ("ecn", "pfc") if spec.fabric_kind.is_ethernet else ("fecn",)
    for own in _tuned("switches.", ports, of_port, partial(at_ports, spec)):
        used = {port: value for port, value in own.values.items() if _is_used(own, ports[port])}
        if used:
            yield replace(own, values=used)
    switches = {name: spec.switch(name) for name in topology.switch}
    of_switch = ["alpha" if spec.fabric_kind.is_ethernet else "credits"]
    if any(own.routing.kind == "flowlet" for own in switches.values()):
        of_switch.append("routing")
    yield from _tuned("switches.", switches, of_switch, partial(at_switches, spec))


def _is_used(own: Setting, port: SwitchSpec) -> bool:
    """Whether the port uses the setting: xon if its xoff is in bytes, xon_offset if an alpha."""
    if port.pfc is None or not own.key.startswith("switches.pfc.xon"):
        return True
    return own.key.endswith("_offset") != bool(port.pfc.xoff.size_bytes)


def _of_hosts(spec: Spec) -> Iterator[Setting]:
    """The timer of all NICs, and the parameters of the congestion controls that marks reach."""
    idle = {host for host, reason in unmarked(spec).items() if reason is not None}
    acting = {flow.bytes_from for flow in spec.fabric_flows()} - idle
    nics = {host: spec.host(host).nic for host in spec.topology.build().host}
    sections = {host: CONTROLS[nic.cc].key for host, nic in nics.items()}
    for section in dict.fromkeys(key for host, key in sections.items() if host in acting and key):
        own = {host: nic for host, nic in nics.items() if sections[host] == section}
        yield from _tuned("hosts.nic.", own, (section,), partial(_at_nics, spec))
    yield from _tuned("hosts.nic.", nics, ("timeout",), partial(_at_nics, spec))


def _at_nics(spec: Spec, key: str, values: Mapping[Any, Any]) -> dict[str, Any]:
    return at_hosts(spec, f"nic.{key}", values)


def _of_subnet(spec: Spec) -> Iterator[Setting]:
    if spec.fabric_kind.has_subnet_manager:
        keys = tuple(type(spec.subnet).model_fields)
        yield from _tuned("subnet.", {"": spec.subnet}, keys, _at_subnet)


def _at_subnet(key: str, values: Mapping[Any, Any]) -> dict[str, Any]:
    return {f"subnet.{key}": value for value in values.values()}


def _tuned(
    above: str, places: Mapping[Any, Model], sections: Sequence[str], put: Put
) -> Iterator[Setting]:
    """The tuned settings in these sections of the models at all places."""
    known: dict[int, dict[str, Any]] = {}
    found: dict[str, dict[Any, Any]] = {}
    for place, model in places.items():
        if id(model) not in known:
            known[id(model)] = _flat_sections(model, sections)
        for key, value in known[id(model)].items():
            if _is_tuned(f"{above}{key}") and _is_quantity(value):
                found.setdefault(key, {})[place] = value
    for key, values in found.items():
        yield Setting(f"{above}{key}", values, partial(put, key))


def _flat_sections(model: Model, sections: Sequence[str]) -> dict[str, Any]:
    data = written(model)
    return dict(flat({key: data[key] for key in sections if key in data}))


def _is_tuned(key: str) -> bool:
    return has_range(key) or key.endswith(_FURTHER) or key.startswith(_LANES)


def _is_quantity(value: Any) -> bool:
    """Whether it is neither a word, as `auto` and `off`, nor nothing."""
    if isinstance(value, bool | list | None):
        return False
    try:
        _times("", value, 1)
    except ValueError:
        return False
    return True
