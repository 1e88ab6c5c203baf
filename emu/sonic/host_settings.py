"""The NICs of the hosts: what follows for them from the ports that they are cabled to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emu.imports.report import Report
from emu.sonic.config_db import Entry
from emu.sonic.fabric import Fabric, Node
from emu.sonic.switch_settings import PortSettings, SwitchSettings
from emu.sonic.writing_ports import ROCE_HEADERS
from emu.spec.host import MTUS

_CONTROL_WITH_MARKS = "dcqcn-nvidia"


def nic_mtu(fabric: Fabric, report: Report) -> int:
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
            report.ignored(row.row("mtu"), "no packet of emu's NICs is longer")
    return mtu


def hosts_section(
    fabric: Fabric, settings: Mapping[str, SwitchSettings], mtu: int
) -> dict[str, Any]:
    """The `hosts:` section. RDMA packets have a DSCP that is lossless at the host's port."""
    dscps = {host.name: _lossless_dscp(fabric, settings, host) for host in fabric.hosts}
    first = next((dscp for dscp in dscps.values() if dscp is not None), None)
    ports = [port for own in settings.values() for port in own.ports.values()]
    nic: dict[str, Any] = {}
    if mtu != max(MTUS):
        nic["mtu"] = mtu
    if first is not None:
        nic["dscp"] = first
    if any(port.classes.trust == "pcp" for port in ports):
        nic["vlan"] = 0
    if any(port.curves for port in ports):
        nic["cc"] = _CONTROL_WITH_MARKS
    nodes = {
        name: {"nic": {"dscp": dscp}}
        for name, dscp in dscps.items()
        if dscp is not None and dscp != first
    }
    sections = {"nic": nic, "nodes": nodes}
    return {key: section for key, section in sections.items() if section}


def _lossless_dscp(
    fabric: Fabric, settings: Mapping[str, SwitchSettings], host: Node
) -> int | None:
    """The lowest DSCP that is lossless at a host's port; None: none is, or nothing is known."""
    leaf = next(own for own in fabric.switches if host.name in own.ports)
    if leaf.name not in settings:
        return None
    port = settings[leaf.name].ports[leaf.ports[host.name]]
    return next((dscp for dscp in range(64) if _is_lossless(port, dscp)), None)


def _is_lossless(port: PortSettings, dscp: int) -> bool:
    """Where PCPs are trusted, a NIC writes the priority of the DSCP into the PCP."""
    priority = port.classes.dscp[dscp]
    if port.classes.trust == "pcp":
        priority = port.classes.pcp[priority]
    return priority in port.lossless
