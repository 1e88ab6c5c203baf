"""A folder of configurations -> a spec, and the report of what became of each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from emu.imports.report import Report
from emu.imports.starter_traffic import starter_traffic
from emu.sonic.buffers import PortPfc
from emu.sonic.cabling import Fabric, Node, read_cabling, unconnected
from emu.sonic.config_db import Config, Entry
from emu.sonic.folder import read_folder
from emu.sonic.layers import Section, layered, switch_section
from emu.sonic.returned import note_returned, own_names
from emu.sonic.switch_settings import PortSettings, read_switch
from emu.sonic.tables import NO_COUNTERPART, TABLES, reason
from emu.sonic.writing_ports import ROCE_HEADERS
from emu.spec.classes import PRIORITIES
from emu.spec.from_code import spec_from_mapping
from emu.spec.headroom import headroom_bytes, response_quanta
from emu.spec.host import MTUS, Nic
from emu.spec.scenario import Spec
from emu.units import PS_PER_METRE, PS_PER_S, write_rate

_CONTROL_WITH_MARKS = "dcqcn-nvidia"
_SHORTEST_LIMIT_MS = 100


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
    data = _Mapping(fabric, report, bgp=bgp).data()
    spec = _spec(data, folder)
    for node in fabric.switches:
        if node.config is not None:
            names = own_names(spec, node.name, node.config)
            if names:
                data["devices"][node.name]["names"] = names
    spec = _spec(data, folder)
    for node in fabric.switches:
        if node.config is not None:
            note_returned(spec, node, report)
    _note_rest(configs, report)
    return Imported(data, spec, fabric, report)


def _spec(data: dict[str, Any], folder: Path) -> Spec:
    copy = {"name": "imported", **data}
    return spec_from_mapping(copy, source=f"{folder} as a spec", folder=Path())


class _Mapping:
    """Makes the keys of the spec."""

    def __init__(self, fabric: Fabric, report: Report, *, bgp: bool) -> None:
        self._fabric = fabric
        self._report = report
        self._bgp = bgp
        self._mtu = _nic_mtu(fabric, report)
        self._settings = {
            node.name: read_switch(node.config, node.ports.values(), report)
            for node in fabric.switches
            if node.config is not None
        }

    def data(self) -> dict[str, Any]:
        limit_ms = max(_limits_ms(self._settings.values()), default=0)
        limit = {"time_limit": f"{limit_ms}ms"} if limit_ms > _SHORTEST_LIMIT_MS else {}
        return {
            **limit,
            "topology": self._topology(),
            "switches": self._switches(),
            "hosts": self._hosts(),
            **_given("traffic", starter_traffic(len(self._fabric.hosts))),
            "devices": self._devices(),
        }

    def _topology(self) -> Section:
        fabric = self._fabric
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

    def _devices(self) -> Section:
        devices: Section = {}
        for node in (*self._fabric.switches, *self._fabric.hosts):
            entry = _given("name", node.device if node.device != node.name else "")
            entry |= _given("model", node.hwsku)
            if node.config is not None:
                entry["file"] = node.config.file
                _note_name(node.config, self._report)
            entry |= _given("ports", dict(node.ports))
            devices |= _given(node.name, entry)
        return devices

    # --- switches ---

    def _switches(self) -> Section:
        sections, roles = {}, {}
        for node in self._fabric.switches:
            name = node.name
            roles[name] = name.rstrip("0123456789")
            if node.config is None:
                sections[name] = {"preset": "sonic"}
                roles[name] = name  # of which nothing is known: alike by chance only
            else:
                sections[name] = self._switch(node, node.config)
        plane = {"routing": {"control_plane": "bgp"}} if self._bgp else {}
        return {**plane, **layered(sections, roles)}

    def _switch(self, node: Node, config: Config) -> Section:
        settings = self._settings[node.name]
        ports = {
            name: self._with_headroom(node, name, settings.ports[port])
            for name, port in node.ports.items()
        }
        settings = replace(settings, ports={node.ports[name]: own for name, own in ports.items()})
        reserved = sum(
            len(own.pfc.priorities) * (own.pfc.headroom_bytes or 0)
            for own in ports.values()
            if own.pfc
        )
        reserved += len(ports) * PRIORITIES * settings.reserved_bytes
        section = switch_section(settings, node.ports, settings.pool_bytes + reserved)
        return section | self._routing(config)

    def _with_headroom(self, node: Node, port: str, settings: PortSettings) -> PortSettings:
        """The settings with a headroom, which is computed if the file does not say."""
        if settings.pfc is None or settings.pfc.headroom_bytes is not None:
            return settings
        return replace(settings, pfc=self._computed(settings.pfc, node.name, port))

    def _computed(self, pfc: PortPfc, name: str, port: str) -> PortPfc:
        far, _, number = port.partition("#")
        cables = [own for own in self._fabric.cables if {own.a, own.b} == {name, far}]
        cable = cables[int(number or 1) - 1]
        response_ps = -(-response_quanta(cable.rate_bps) * 512 * PS_PER_S // cable.rate_bps)
        headroom = headroom_bytes(
            rate_bps=cable.rate_bps,
            delay_ps=cable.metres * PS_PER_METRE,
            response_ps=response_ps,
            frame_bytes=Nic(mtu=self._mtu).largest_frame_bytes,
        )
        return replace(pfc, headroom_bytes=headroom)

    def _routing(self, config: Config) -> Section:
        entry = config.at("DEVICE_METADATA", "localhost")
        asn = None if entry is None else entry.get("bgp_asn")
        if entry is None or asn is None:
            return {}
        if not self._bgp:
            self._report.ignored(
                entry.row("bgp_asn"),
                "routes are the shortest paths, which BGP finds as well; --bgp lets FRR find them",
            )
            return {}
        self._report.taken(entry.row("bgp_asn"), "switches.routing.bgp.asn")
        return {"routing": {"bgp": {"asn": int(asn)}}}

    # --- hosts ---

    def _hosts(self) -> Section:
        dscps = {host.name: self._dscp(host) for host in self._fabric.hosts}
        known = [dscp for dscp in dscps.values() if dscp is not None]
        nic: Section = {} if self._mtu == max(MTUS) else {"mtu": self._mtu}
        first = known[0] if known else None
        if first is not None:
            nic["dscp"] = first
        if any(own.classes.trust == "pcp" for own in self._ports()):
            nic["vlan"] = 0
        if any(own.curves for own in self._ports()):
            nic["cc"] = _CONTROL_WITH_MARKS
        nodes = {
            name: {"nic": {"dscp": dscp}}
            for name, dscp in dscps.items()
            if dscp is not None and dscp != first
        }
        return {**_given("nic", nic), **_given("nodes", nodes)}

    def _ports(self) -> Iterator[PortSettings]:
        for settings in self._settings.values():
            yield from settings.ports.values()

    def _dscp(self, host: Node) -> int | None:
        """The lowest DSCP that is lossless at a host's port; None: none is, or nothing is known."""
        leaf = next(own for own in self._fabric.switches if host.name in own.ports)
        if leaf.config is None:
            return None
        port = self._settings[leaf.name].ports[leaf.ports[host.name]]
        classes = port.classes
        for dscp, priority in enumerate(classes.dscp):
            tc = classes.pcp[priority] if classes.trust == "pcp" else priority
            if tc in port.lossless:
                return dscp
        return None


def _given(key: str, value: Any) -> dict[str, Any]:
    return {key: value} if value else {}


def _limits_ms(settings: Any) -> Iterator[int]:
    """How long a run may have to be for a watchdog to detect a storm and to end it."""
    for own in settings:
        if own.watchdog:
            yield 2 * (own.watchdog.detection_ms + own.watchdog.poll_ms)


def _nic_mtu(fabric: Fabric, report: Report) -> int:
    """The largest MTU of NICs whose packets fit into those of all ports."""
    rows: list[Entry] = []
    for node in fabric.switches:
        for port in node.ports.values() if node.config else ():
            row = node.config.at("PORT", port) if node.config else None
            if row is not None and row.get("mtu") is not None:
                rows.append(row)
    smallest = min((int(row.get("mtu")) for row in rows), default=max(MTUS) + ROCE_HEADERS)
    mtu = max((own for own in MTUS if own + ROCE_HEADERS <= smallest), default=min(MTUS))
    for row in rows:
        if mtu < max(MTUS) and int(row.get("mtu")) == smallest:
            report.approximated(row.row("mtu"), f"hosts.nic.mtu {mtu}: payload of RDMA packets")
        else:
            report.ignored(row.row("mtu"), "emu's NICs send no longer packets")
    return mtu


def _note_name(config: Config, report: Report) -> None:
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


# --- the rest ---


def _note_rest(configs: Sequence[Config], report: Report) -> None:
    """Notes all rows that nothing has used."""
    for config in configs:
        for entry in config.entries:
            if entry.table not in TABLES:
                report.ignored(entry.row(), reason(entry.table, ""))
                continue
            for field in entry.fields:
                if report.outcome(entry.row(field)) is None:
                    report.ignored(entry.row(field), _why_not(entry, field))
            if not entry.fields and report.outcome(entry.row()) is None:
                report.ignored(entry.row(), "the row has no fields")


def _why_not(entry: Entry, field: str) -> str:
    own = reason(entry.table, field)
    is_read = field in TABLES[entry.table].fields or TABLES[entry.table].each is not None
    if own is NO_COUNTERPART and entry.key in TABLES[entry.table].words:
        return "each port with a cable has its own"
    if own is NO_COUNTERPART and is_read:
        return _UNUSED.get((entry.table, field), "no port with a cable uses it")
    return own


_UNUSED: Mapping[tuple[str, str], str] = {
    ("BUFFER_PROFILE", "headroom_type"): "the sizes in the file count",
    ("BUFFER_PROFILE", "packet_discard_action"): "emu's switches drop packets whole",
    ("PORT_QOS_MAP", "pfcwd_sw_enable"): "no port of the switch has a watchdog (PFC_WD)",
    ("PORT", "pfc_asym"): "emu's PFC is the same in both directions",
    ("PORT", "admin_status"): "ports with a cable are up",
}
