"""A folder of configurations -> a spec, and the report of what became of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emu.imports.report import Report
from emu.imports.starter_traffic import starter_traffic
from emu.sonic.cabling import read_cabling, unconnected
from emu.sonic.computed_headroom import with_headroom
from emu.sonic.config_db import Config
from emu.sonic.fabric import SERVER, USUAL_TYPES, Fabric, Node
from emu.sonic.folder import read_folder
from emu.sonic.host_settings import hosts_section, nic_mtu
from emu.sonic.layers import Section, layered, switch_section
from emu.sonic.leftovers import note_rest
from emu.sonic.returned import note_returned, own_names
from emu.sonic.switch_settings import SwitchSettings, read_switch
from emu.spec.from_code import spec_from_mapping
from emu.spec.scenario import Spec
from emu.units import write_rate

_USUAL_LIMIT_MS = 100
"""The default time limit of a spec."""


@dataclass(frozen=True)
class Imported:
    """A spec that was made from configurations."""

    data: dict[str, Any]
    """Its keys."""
    spec: Spec
    fabric: Fabric
    report: Report


def import_folder(folder: Path, *, bgp: bool = False) -> Imported:
    """The spec of a folder. `bgp`: FRR gives the switches their routes.

    Raises UsageError, SpecError.
    """
    report, configs = Report(), read_folder(folder)
    fabric = read_cabling(configs, report)
    unconnected(configs, fabric, report)
    data = _data(fabric, report, bgp=bgp)
    spec = _spec(data, folder)
    switches = [(node, node.config) for node in fabric.switches if node.config is not None]
    for node, config in switches:
        if names := own_names(spec, node.name, config):
            data["devices"][node.name]["names"] = names
    spec = _spec(data, folder)
    for node, config in switches:
        note_returned(spec, node.name, config, set(node.ports.values()), report)
    note_rest(configs, report)
    return Imported(data, spec, fabric, report)


def _spec(data: dict[str, Any], folder: Path) -> Spec:
    named = {"name": "imported", **data}
    return spec_from_mapping(named, source=f"{folder} as a spec", folder=Path())


def _data(fabric: Fabric, report: Report, *, bgp: bool) -> dict[str, Any]:
    """The keys of the spec."""
    mtu = nic_mtu(fabric, report)
    settings = {
        node.name: with_headroom(
            read_switch(node.config, node.ports.values(), report), fabric, node, mtu
        )
        for node in fabric.switches
        if node.config is not None
    }
    return {
        **_time_limit(settings),
        "topology": _topology(fabric),
        "switches": _switches(fabric, settings, report, bgp=bgp),
        "hosts": hosts_section(fabric, settings, mtu),
        **_given("traffic", starter_traffic(len(fabric.hosts))),
        "devices": _devices(fabric, report),
    }


def _time_limit(settings: Mapping[str, SwitchSettings]) -> Section:
    """A limit with time for each watchdog to detect a storm and to end it."""
    watchdogs = [own.watchdog for own in settings.values() if own.watchdog]
    longest_ms = max((own.detection_ms + own.poll_ms for own in watchdogs), default=0)
    return {"time_limit": f"{2 * longest_ms}ms"} if 2 * longest_ms > _USUAL_LIMIT_MS else {}


def _topology(fabric: Fabric) -> Section:
    return {
        "kind": "graph",
        "switches": [node.name for node in fabric.switches],
        "hosts": [node.name for node in fabric.hosts],
        "links": [
            {
                "between": [cable.a, cable.b],
                "rate": write_rate(cable.rate_bps),
                "length": f"{cable.metres}m",
            }
            for cable in fabric.cables
        ],
    }


# --- switches ---


def _switches(
    fabric: Fabric, settings: Mapping[str, SwitchSettings], report: Report, *, bgp: bool
) -> Section:
    """The `switches:` section. A switch without a file is like SONiC's images."""
    sections: dict[str, Section] = {}
    roles: dict[str, str] = {}
    for node in fabric.switches:
        if node.config is None:
            sections[node.name], roles[node.name] = {"preset": "sonic"}, node.name
        else:
            section = switch_section(settings[node.name], node.ports)
            sections[node.name] = section | _routing(node.config, report, bgp=bgp)
            roles[node.name] = _role(node)
    plane = {"routing": {"control_plane": "bgp"}} if bgp else {}
    return {**plane, **layered(sections, roles)}


def _role(node: Node) -> str:
    return node.name.rstrip("0123456789")


def _routing(config: Config, report: Report, *, bgp: bool) -> Section:
    entry = config.at("DEVICE_METADATA", "localhost")
    asn = None if entry is None else entry.get("bgp_asn")
    if entry is None or asn is None:
        return {}
    if not bgp:
        report.ignored(
            entry.row("bgp_asn"),
            "routes are the shortest paths, which BGP finds as well; --bgp lets FRR find them",
        )
        return {}
    report.taken(entry.row("bgp_asn"), "switches.routing.bgp.asn")
    return {"routing": {"bgp": {"asn": asn}}}


# --- devices ---


def _devices(fabric: Fabric, report: Report) -> Section:
    """The `devices:` section: the names that differ from emu's."""
    devices: Section = {}
    for node in (*fabric.switches, *fabric.hosts):
        usual = USUAL_TYPES.get(_role(node), SERVER)
        entry = {
            **_given("name", node.device if node.device != node.name else ""),
            **_given("model", node.hwsku),
            **_given("type", node.type if node.type != usual else ""),
        }
        if node.config is not None:
            entry["file"] = node.config.file
            _note_names(node.config, report)
        devices |= _given(node.name, entry | _given("ports", dict(node.ports)))
    return devices


def _note_names(config: Config, report: Report) -> None:
    entry = config.at("DEVICE_METADATA", "localhost")
    if entry is None:
        return
    if entry.get("hostname") is not None:
        report.taken(entry.row("hostname"), "devices.NAME.name")
    if entry.get("buffer_model") == "traditional":
        report.taken(entry.row("buffer_model"), "sizes are those of the file")
    elif entry.get("buffer_model") is not None:
        report.approximated(
            entry.row("buffer_model"), "sizes that the switch computes are emu's; traditional"
        )


def _given(key: str, value: Any) -> dict[str, Any]:
    return {key: value} if value else {}
