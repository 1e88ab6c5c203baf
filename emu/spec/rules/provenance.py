"""The path of the key that gives a value of one switch, port or host: for itself, for its role, or
for all."""

from __future__ import annotations

from emu.spec.diagnostic import KeyPath
from emu.spec.scenario import Spec
from topologies.graph import Port

_LAYERS = {"roles", "nodes", "ports"}
"""The keys of `switches` whose values apply to some switches or ports."""


def for_switch(spec: Spec, name: str, *keys: str) -> KeyPath:
    """The key of a switch: `("switches", "roles", "leaf", "pfc", "xon")` if leaves have an xon of
    their own."""
    return _nearest("switches", spec, (("nodes", name), *_roles(spec, name)), keys)


def for_port(spec: Spec, port: Port, *keys: str) -> KeyPath:
    """The key of a port: `("switches", "ports", "h1", "pfc", "xon")` if ports to h1 have an xon of
    their own."""
    if not _LAYERS & spec.written.get("switches", {}).keys():
        return ("switches", *keys)
    topology = spec.topology.build()
    neighbour = topology.port_name[port].partition(":")[2]
    layers: tuple[KeyPath, ...] = (("nodes", port.node), *_roles(spec, port.node), ())
    owners = (*((*layer, "ports", neighbour) for layer in layers), *layers)
    return _nearest("switches", spec, owners, keys)


def _roles(spec: Spec, switch: str) -> list[KeyPath]:
    """The paths of a switch's roles, the most specific first."""
    return [("roles", role) for role in reversed(spec.topology.build().roles[switch])]


def for_host(spec: Spec, name: str, *keys: str) -> KeyPath:
    return _nearest("hosts", spec, (("nodes", name),), keys)


def _nearest(
    section: str, spec: Spec, owners: tuple[KeyPath, ...], keys: tuple[str, ...]
) -> KeyPath:
    paths = ((section, *owner, *keys) for owner in owners)
    return next((path for path in paths if is_written(spec, path)), (section, *keys))


def is_written(spec: Spec, path: KeyPath) -> bool:
    """Whether the spec gives the key."""
    return has(spec.written, path)


def has(mapping: object, path: KeyPath) -> bool:
    """Whether nested mappings and lists have the path."""
    for key in path:
        if isinstance(mapping, dict) and key in mapping:
            mapping = mapping[key]
        elif isinstance(mapping, list | tuple) and key in range(len(mapping)):
            mapping = mapping[int(key)]
        else:
            return False
    return True
