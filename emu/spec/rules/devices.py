"""Rules for the names of real devices."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.diagnostic import Diagnostic, KeyPath, unknown_name
from emu.spec.scenario import Spec

_TOPOLOGY: KeyPath = ("topology",)


def devices_are_nodes(spec: Spec) -> Iterator[Diagnostic]:
    known = list(spec.topology.build().ports)
    for name in spec.devices:
        if name not in known:
            text = unknown_name("node", name, known)
            yield Diagnostic(("devices", name), text, about=(_TOPOLOGY,))


def ports_of_devices_are_cables(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    for name, device in spec.devices.items():
        ports = topology.ports.get(name, ())
        known = [topology.port_name[port].partition(":")[2] for port in ports]
        for far in device.ports if known else ():
            if far not in known:
                path = ("devices", name, "ports", far)
                yield Diagnostic(path, unknown_name("neighbour", far, known), about=(_TOPOLOGY,))


def devices_differ(spec: Spec) -> Iterator[Diagnostic]:
    """Two devices do not share a file, nor two ports of a device a name."""
    first: dict[str, str] = {}
    for name, device in spec.devices.items():
        other = first.setdefault(device.file or f"/{name}", name)
        if other != name:
            text = f"is the file of {other}, too; give each device its own"
            yield Diagnostic(("devices", name, "file"), text, (("devices", other, "file"),))
        ports: dict[str, str] = {}
        for far, port in device.ports.items():
            other = ports.setdefault(port, far)
            if other != far:
                text = f"{port} is the port to {other}, too; a port has one neighbour"
                about = (("devices", name, "ports", other),)
                yield Diagnostic(("devices", name, "ports", far), text, about)


RULES = (devices_are_nodes, ports_of_devices_are_cables, devices_differ)
