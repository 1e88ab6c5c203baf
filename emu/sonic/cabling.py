"""The cables of all switches' DEVICE_NEIGHBOR tables, each once, if both ends agree.

    leaf1.json   DEVICE_NEIGHBOR|Ethernet4  name spine1, port Ethernet1
    spine1.json  DEVICE_NEIGHBOR|Ethernet1  name leaf1, port Ethernet4      the same cable

A server's NIC port is a host, so a server with two cables is two hosts. A neighbour of another type
without a file is a switch of which only the cables are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emu.errors import SpecError
from emu.imports.report import Report, Row
from emu.sonic.config_db import Config, Entry, Findings, natural
from emu.sonic.device_types import Devices
from emu.sonic.fabric import End, Fabric, FoundCable
from emu.sonic.naming import named_fabric
from emu.units import BPS_PER_MBPS, write_rate

_DEFAULT_METRES = 5


def read_cabling(configs: Sequence[Config], report: Report) -> Fabric:
    """The fabric. Raises SpecError with all contradictions between the files."""
    findings = Findings()
    devices = Devices(configs, findings, report)
    cables = _Cables(configs, devices, findings, report).found()
    findings.check()
    if not cables:
        raise SpecError(
            [f"{configs[0].file}: DEVICE_NEIGHBOR: no port has a neighbour, so there is no fabric"]
        )
    return named_fabric(cables, devices)


class _Cables:
    """Finds each cable once, and compares what both ends say."""

    def __init__(
        self, configs: Sequence[Config], devices: Devices, findings: Findings, report: Report
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
