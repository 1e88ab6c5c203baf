"""What each device is: DEVICE_METADATA of the switches, DEVICE_NEIGHBOR_METADATA of neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from emu.imports.report import Report, Row
from emu.sonic.config_db import Config, Entry, Findings
from emu.sonic.fabric import OTHER_ROLE, ROLES, SERVER


class Devices:
    """What is known of each device: its file, its type and its model."""

    def __init__(self, configs: Sequence[Config], findings: Findings, report: Report) -> None:
        self.config = {config.name: config for config in configs}
        self.type: dict[str, str] = {}
        self.hwsku: dict[str, str] = {}
        self._said: dict[str, Row] = {}
        self._findings = findings
        for config in configs:
            own = config.at("DEVICE_METADATA", "localhost")
            if own is not None:
                self._learn(config.name, own, report)
        for config in configs:
            for entry in config.table("DEVICE_NEIGHBOR_METADATA"):
                self._learn(entry.key, entry, report)
        for config in configs:
            if config.name not in self.type:
                row = Row(config.file, "DEVICE_METADATA", "localhost", "type")
                report.approximated(row, f"not given; its role is {OTHER_ROLE}")

    def is_server(self, device: str) -> bool:
        """Whether a device is a host. One of which nothing is known is."""
        known = self.type.get(device)
        return device not in self.config and (not known or known.startswith(SERVER))

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
