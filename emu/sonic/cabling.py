"""The fabric of all switches' DEVICE_NEIGHBOR tables: nodes under emu's names, and cables.

    leaf1.json   DEVICE_NEIGHBOR|Ethernet4  name spine1, port Ethernet1
    spine1.json  DEVICE_NEIGHBOR|Ethernet1  name leaf1, port Ethernet4      the same cable

SONiC's ToRRouter is emu's leaf, and its LeafRouter emu's spine. A server's NIC port is a host, so a
server with two cables is two hosts. A neighbour of another type without a file is a switch of which
only the cables are known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from emu.errors import SpecError
from emu.imports.report import Report, Row
from emu.sonic.config_db import Config, Entry, Findings, natural
from emu.units import BPS_PER_MBPS, write_rate

ROLES = {
    "ToRRouter": "leaf",
    "LeafRouter": "spine",
    "SpineRouter": "core",
    "BackEndToRRouter": "leaf",
    "BackEndLeafRouter": "spine",
    "UpperSpineRouter": "core",
    "FabricSpineRouter": "core",
}
"""SONiC's types of devices -> roles in emu."""
OTHER_ROLE = "sw"
_SERVER = "server"
_DEFAULT_METRES = 5


class End(NamedTuple):
    """One end of a cable, by SONiC's names."""

    device: str
    port: str


@dataclass(frozen=True)
class FoundCable:
    """A cable, once for both ends. `a` is a switch with a file."""

    a: End
    b: End
    rate_bps: int
    metres: int


@dataclass
class Node:
    """A switch or a host: emu's name and the device's."""

    name: str
    device: str
    type: str = ""
    hwsku: str = ""
    config: Config | None = None
    ports: dict[str, str] = field(default_factory=dict)
    """emu's name of the port (`h1`, `spine1#2`) -> the device's."""


@dataclass(frozen=True)
class Cable:
    """A cable between two of emu's nodes."""

    a: str
    b: str
    rate_bps: int
    metres: int


@dataclass(frozen=True)
class Fabric:
    """All nodes and cables, in order of their names."""

    switches: tuple[Node, ...]
    hosts: tuple[Node, ...]
    cables: tuple[Cable, ...]


def read_cabling(configs: Sequence[Config], report: Report) -> Fabric:
    """The fabric. Raises SpecError with all contradictions between the files."""
    findings = Findings()
    devices = _Devices(configs, findings, report)
    cables = _Cables(configs, devices, findings, report).found()
    findings.check()
    if not cables:
        raise SpecError(
            [f"{configs[0].file}: DEVICE_NEIGHBOR: no port has a neighbour, so there is no fabric"]
        )
    return _named(cables, devices)


class _Devices:
    """What is known of each device: its file, its type and its model."""

    def __init__(self, configs: Sequence[Config], findings: Findings, report: Report) -> None:
        self.config = {config.name: config for config in configs}
        self.type: dict[str, str] = {}
        self.hwsku: dict[str, str] = {}
        self._said: dict[str, Row] = {}
        self._findings = findings
        for config in configs:
            own = config.at("DEVICE_METADATA", "localhost")
            if own is None or own.get("type") is None:
                row = Row(config.file, "DEVICE_METADATA", "localhost", "type")
                report.approximated(row, f"not given; its role is {OTHER_ROLE}")
                self.type[config.name] = ""
            else:
                self._learn(config.name, own, report)
        for config in configs:
            for entry in config.table("DEVICE_NEIGHBOR_METADATA"):
                self._learn(entry.key, entry, report)

    def is_server(self, device: str) -> bool:
        """Whether a device is a host. One of which nothing is known is."""
        known = self.type.get(device)
        return device not in self.config and (not known or known.lower().startswith(_SERVER))

    def role(self, device: str) -> str:
        return ROLES.get(self.type.get(device, ""), OTHER_ROLE)

    def _learn(self, device: str, entry: Entry, report: Report) -> None:
        for field_name, known in (("type", self.type), ("hwsku", self.hwsku)):
            value = entry.get(field_name)
            if value is None:
                continue
            if field_name == "type" and known.setdefault(device, value) != value:
                self._findings.add(
                    entry.row("type"),
                    f"{device} is a {value} here and a {known[device]} in {self._said[device]}; "
                    "a device has one type",
                )
            known.setdefault(device, value)
            if field_name == "type":
                self._said.setdefault(device, entry.row("type"))
                report.taken(entry.row(field_name), "the role: " + self._role_text(device))
            else:
                report.taken(entry.row(field_name), "devices.NAME.model")

    def _role_text(self, device: str) -> str:
        return "a host" if self.is_server(device) else self.role(device)


class _Cables:
    """Finds each cable once, and compares what both ends say."""

    def __init__(
        self, configs: Sequence[Config], devices: _Devices, findings: Findings, report: Report
    ) -> None:
        self._configs = configs
        self._devices = devices
        self._findings = findings
        self._report = report

    def found(self) -> list[FoundCable]:
        by_end: dict[End, FoundCable] = {}
        for config in self._configs:
            for entry in sorted(config.table("DEVICE_NEIGHBOR"), key=lambda own: natural(own.key)):
                cable = self._cable(config, entry)
                if cable is None or _joins(by_end.get(cable.a), cable):
                    continue
                for end in (cable.a, cable.b):
                    if end.port and by_end.setdefault(end, cable) is not cable:
                        self._two_cables(entry, end, by_end[end])
        return list(dict.fromkeys(by_end.values()))

    def _two_cables(self, entry: Entry, end: End, other: FoundCable) -> None:
        far = other.b if other.a == end else other.a
        self._findings.add(
            entry.row(),
            f"{end.device} {end.port} has a cable already, to {far.device} {far.port}; a port has "
            "one neighbour",
        )

    def _cable(self, config: Config, entry: Entry) -> FoundCable | None:
        """The cable of a row; None: it is left out, or a mistake has been noted."""
        port = config.at("PORT", entry.key)
        device = entry.get("name")
        if port is None or device is None:
            self._findings.add(entry.row("name"), "is missing; name the device at the other end")
            return None
        if port.get("admin_status") == "down":
            self._report.ignored(entry.row(), f"{entry.key} is down (admin_status)")
            return None
        if device == config.name:
            self._findings.add(entry.row("name"), "a cable of a switch to itself is not emulated")
            return None
        a = End(config.name, entry.key)
        b = self._far_end(config, entry, device, a)
        rate_bps = self._rate(port)
        if b is None or rate_bps is None:
            return None
        return FoundCable(a, b, rate_bps, self._metres(config, a, b))

    def _far_end(self, config: Config, entry: Entry, device: str, a: End) -> End | None:
        far = self._devices.config.get(device)
        self._note_neighbour(entry, device)
        if far is None:
            return End(device, entry.get("port") or "")
        return self._agreed(entry, far, a)

    def _agreed(self, entry: Entry, far: Config, a: End) -> End | None:
        """The far end, which has a file, if that agrees."""
        back = [
            row
            for row in far.table("DEVICE_NEIGHBOR")
            if (row.get("name"), row.get("port")) == (a.device, a.port)
        ]
        port = entry.get("port") or (back[0].key if back else None)
        if port is None:
            self._findings.add(entry.row("port"), f"is missing; name the port of {far.name}")
            return None
        row = far.at("DEVICE_NEIGHBOR", port)
        if far.at("PORT", port) is None:
            self._findings.add(
                entry.row("port"), f"there is no PORT|{port} in {far.file}; correct one of them"
            )
            return None
        says = None if row is None else (row.get("name"), row.get("port") or a.port)
        if says not in (None, tuple(a)) or (back and back[0].key != port):
            other = row if row is not None else back[0]
            self._findings.add(
                entry.row(),
                f"says {far.name} {port}, and {other.row()} says {other.get('name')} "
                f"{other.get('port') or ''}; correct one of them".replace(" ;", ";"),
            )
            return None
        if row is None:
            self._report.approximated(
                entry.row(), f"{far.file} has no DEVICE_NEIGHBOR|{port}; taken from this end"
            )
        self._same_speed(entry, a, End(far.name, port))
        return End(far.name, port)

    def _note_neighbour(self, entry: Entry, device: str) -> None:
        report = self._report
        known = device in self._devices.config or device in self._devices.type
        if device not in self._devices.config and not self._devices.is_server(device):
            report.approximated(
                entry.row("name"),
                f"{device} has no file; it is a switch with the settings of preset: sonic",
            )
        elif not known:
            report.approximated(
                entry.row("name"),
                f"{device} has neither a file nor a type in DEVICE_NEIGHBOR_METADATA; it is a host",
            )
        else:
            report.taken(entry.row("name"), "topology.links, devices.NAME.name")
        if entry.get("port") is not None:
            report.taken(entry.row("port"), "topology.links, devices.NAME.ports")

    def _rate(self, port: Entry) -> int | None:
        speed = port.get("speed")
        if speed is None:
            self._findings.add(port.row("speed"), "is missing; give it in Mbit/s, e.g. 100000")
            return None
        self._report.taken(port.row("speed"), "topology.links rate")
        return int(speed) * BPS_PER_MBPS

    def _same_speed(self, entry: Entry, a: End, b: End) -> None:
        ports = [self._devices.config[end.device].at("PORT", end.port) for end in (a, b)]
        rates = [None if port is None else self._rate(port) for port in ports]
        if None not in rates and rates[0] != rates[1]:
            self._findings.add(
                entry.row(),
                f"{a.device} {a.port} has {write_rate(rates[0] or 0)} and {b.device} {b.port} "
                f"{write_rate(rates[1] or 0)}; both ends of a cable have one speed",
            )

    def _metres(self, config: Config, a: End, b: End) -> int:
        """The length of a cable. Where the ends differ, the longer counts for both."""
        said = [_length(self._devices.config.get(end.device), end.port) for end in (a, b)]
        known = [(entry, port, metres) for entry, port, metres in said if entry is not None]
        longest = max((metres for _, _, metres in known), default=None)
        if longest is None:
            self._report.approximated(
                Row(config.file, "CABLE_LENGTH", "", a.port), f"not given; {_DEFAULT_METRES}m"
            )
            return _DEFAULT_METRES
        for entry, port, metres in known:
            if metres == longest:
                self._report.taken(entry.row(port), "topology.links length, 5 ns a metre")
            else:
                self._report.approximated(
                    entry.row(port), f"the other end says {longest}m, which counts"
                )
        return longest


def _length(config: Config | None, port: str) -> tuple[Entry | None, str, int]:
    """The row that has a port's cable length, the port, and the metres."""
    for entry in config.table("CABLE_LENGTH") if config else ():
        if port in entry.values:
            return entry, port, int(entry.values[port])
    return None, port, 0


def _joins(known: FoundCable | None, cable: FoundCable) -> bool:
    """Whether a cable that is known already joins the same two ports."""
    return known is not None and {known.a, known.b} == {cable.a, cable.b}


# --- emu's names ---


def _named(cables: Sequence[FoundCable], devices: _Devices) -> Fabric:
    names = _switch_names(cables, devices)
    switches = {
        device: Node(
            name,
            device,
            devices.type.get(device, ""),
            devices.hwsku.get(device, ""),
            devices.config.get(device),
        )
        for device, name in names.items()
    }
    hosts = {
        cable: Node(f"h{number}", cable.b.device, devices.type.get(cable.b.device, ""))
        for number, cable in enumerate(_to_hosts(cables, names), start=1)
    }
    made: list[Cable] = []
    numbered: Counter[tuple[str, str]] = Counter()
    for cable in sorted(cables, key=_by_rate):
        a, b = switches[cable.a.device], hosts.get(cable) or switches[cable.b.device]
        for own, far, end in ((a, b, cable.a), (b, a, cable.b)):
            numbered[own.name, far.name] += 1
            number = numbered[own.name, far.name]
            if end.port:
                own.ports[far.name if number == 1 else f"{far.name}#{number}"] = end.port
        made.append(Cable(a.name, b.name, cable.rate_bps, cable.metres))
    return Fabric(
        tuple(sorted(switches.values(), key=lambda node: natural(node.name))),
        tuple(hosts.values()),
        tuple(sorted(made, key=lambda cable: (natural(cable.a), natural(cable.b)))),
    )


def _to_hosts(cables: Sequence[FoundCable], names: Mapping[str, str]) -> list[FoundCable]:
    """The cables to hosts, in the order of their switches and ports."""
    to_hosts = [cable for cable in cables if cable.b.device not in names]
    return sorted(to_hosts, key=lambda own: (natural(names[own.a.device]), natural(own.a.port)))


def _by_rate(cable: FoundCable) -> tuple[object, ...]:
    """By rate and delay, as topologies number the cables between the same two nodes."""
    return cable.rate_bps, cable.metres, natural(cable.a.port)


def _switch_names(cables: Sequence[FoundCable], devices: _Devices) -> dict[str, str]:
    """emu's name of each switch: its own if it is a role and a number, else the next free."""
    ends = sorted({end.device for cable in cables for end in (cable.a, cable.b)}, key=natural)
    roles = {device: devices.role(device) for device in ends if not devices.is_server(device)}
    names = {
        device: device
        for device, role in roles.items()
        if re.fullmatch(f"{role}[1-9][0-9]{{0,3}}", device)
    }
    taken = set(names.values())
    for device, role in roles.items():
        if device not in names:
            free = (f"{role}{number}" for number in count(1))
            names[device] = next(name for name in free if name not in taken)
            taken.add(names[device])
    return names


def unconnected(configs: Sequence[Config], fabric: Fabric, report: Report) -> None:
    """Notes ports without a cable."""
    used = {(node.device, port) for node in fabric.switches for port in node.ports.values()}
    for config, port in _ports(configs):
        if (config.name, port) not in used:
            row = Row(config.file, "PORT", port)
            report.ignored(row, "no cable leads there (DEVICE_NEIGHBOR), or it is down")


def _ports(configs: Sequence[Config]) -> Iterator[tuple[Config, str]]:
    for config in configs:
        yield from ((config, port) for port in config.ports)
