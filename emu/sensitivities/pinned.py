"""The spec with its derived thresholds written out, and keys that reach every port or host.

Some values follow from others unless they are given: kmax from kmin, both from xoff, headroom from
the cable. If they still did, one change would be several. So each side first gets these values as
keys, each port its own. Its runs are the same as before. Only xon stays two thirds of xoff unless
it is given: no xoff would be half as large otherwise.

    one value everywhere, no roles or nodes in the spec     switches.ecn.kmin
    else                                                    switches.nodes.leaf1.ports.h1.ecn.kmin
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from emu.spec.from_code import with_values
from emu.spec.headroom import headroom_of
from emu.spec.rules.provenance import has
from emu.spec.scenario import Spec
from emu.units import write_size
from topologies.graph import Port

_LAYERS = ("roles", "nodes", "ports")


def pinned(spec: Spec) -> Spec:
    """The spec with all values written out that are derived from tuned ones, without variants."""
    plain = Spec.model_validate({k: v for k, v in spec.to_mapping().items() if k != "compare"})
    by_key: dict[str, dict[Port, Any]] = {}
    for port in spec.topology.build().switch_ports if spec.fabric_kind.is_ethernet else ():
        for key, value in _derived(spec, port):
            by_key.setdefault(key, {})[port] = value
    values: dict[str, Any] = {}
    for key, own in by_key.items():
        values |= at_ports(plain, key, own)
    return with_values(plain, values, source=spec.name) if values else plain


def _derived(spec: Spec, port: Port) -> Iterator[tuple[str, str | float]]:
    """Keys of a port that are derived unless given, with their values."""
    own = spec.port(port)
    if own.pfc is not None:
        yield "pfc.headroom", write_size(headroom_of(spec, port))
    if own.ecn is not None:
        curves = {"": own.ecn} | {f"queues.{n}.": c for n, c in own.ecn.queues.items() if c}
        for of, curve in curves.items():
            yield f"ecn.{of}kmin", write_size(curve.kmin_bytes)
            yield f"ecn.{of}kmax", write_size(curve.kmax_bytes)
            if of:
                yield f"ecn.{of}pmax", curve.pmax


def at_ports(spec: Spec, key: str, values: Mapping[Port, Any]) -> dict[str, Any]:
    """The settings that give each of these ports of switches its value of a key, as `ecn.kmin`."""
    topology = spec.topology.build()
    everywhere = values.keys() == set(topology.switch_ports)
    if everywhere and _is_one(values) and not _has_layers(spec, "switches"):
        return {f"switches.{key}": next(iter(values.values()))}
    return {
        f"switches.nodes.{port.node}.ports.{_neighbour(spec, port)}.{key}": value
        for port, value in values.items()
    }


def at_switches(spec: Spec, key: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a key that all ports of a switch share, as `alpha`."""
    everywhere = values.keys() == spec.topology.build().switch.keys()
    if everywhere and _is_one(values) and not _has_layers(spec, "switches"):
        return {f"switches.{key}": next(iter(values.values()))}
    return {f"switches.nodes.{name}.{key}": value for name, value in values.items()}


def at_hosts(spec: Spec, key: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a key of hosts, as `nic.timeout`."""
    everywhere = values.keys() == spec.topology.build().host.keys()
    if everywhere and _is_one(values) and not _has_layers(spec, "hosts"):
        return {f"hosts.{key}": next(iter(values.values()))}
    return {f"hosts.nodes.{name}.{key}": value for name, value in values.items()}


def _neighbour(spec: Spec, port: Port) -> str:
    return spec.topology.build().port_name[port].partition(":")[2]


def _is_one(values: Mapping[Any, Any]) -> bool:
    return len({str(value) for value in values.values()}) == 1


def _has_layers(spec: Spec, section: str) -> bool:
    return any(has(spec.written, (section, layer)) for layer in _LAYERS)
