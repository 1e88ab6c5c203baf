"""The value of a key that is in force in a spec, and its origin.

given       in the file, at this line: for all, for a role, for a switch, for a port, for a host
preset      of a switch, of its role or of all (see `_layered` in emu/spec/scenario.py)
derived     computed from rate, cable, MTU, buffer and the like
default     the default that `emu explain KEY` shows
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from emu.errors import UsageError
from emu.explain import keys
from emu.spec.base import Model
from emu.spec.derived import Derived, derived, derived_of_host, derived_of_switch
from emu.spec.diagnostic import KeyPath, Place, Places, did_you_mean, dotted
from emu.spec.document import Document
from emu.spec.load import document_of
from emu.spec.notes import written
from emu.spec.presets import PRESETS
from emu.spec.rules.provenance import has
from emu.spec.scenario import Spec
from emu.spec.switch import PortSpec
from emu.spec.validation import spec_of
from emu.words import shortened
from topologies.graph import Switch

_OF_PORTS = {field.alias or name for name, field in PortSpec.model_fields.items()}
_LAYERS_THEMSELVES = {"roles", "nodes", "ports"}
_NAMES_SHOWN = 6
GIVEN = "given"
"""The origin of a value that a spec without a file gives."""
Row = tuple[str, str, str]
"""Key, value and origin."""


@dataclass(frozen=True)
class Value:
    key: str
    where: str
    """The switches, ports or hosts; empty for keys of the whole spec."""
    value: str
    origin: str


class OpenSpec:
    """A spec file, or one of its variants, whose values are shown."""

    def __init__(self, path: Path, settings: Sequence[str], variant: str | None) -> None:
        """Reads the file. Raises SpecError and UsageError."""
        self._path = path
        document = document_of(path, settings)
        spec = spec_of(document)
        self._spec = spec if variant is None else _variant(spec, variant)
        self._source = _Source(self._spec, document, variant)

    def by_pattern(self, words: Sequence[str]) -> tuple[str, ...]:
        """The words with a traffic entry's pattern in place of its name or number, as in the
        schema."""
        match ".".join(words).split("."):
            case "traffic", name, *inside:
                patterns: list[str] = [
                    entry.pattern
                    for number, entry in enumerate(self._spec.traffic)
                    if name in (entry.name, str(number))
                ]
                return (".".join(("traffic", *(patterns or [name]), *inside)),)
        return tuple(words)

    def values(self, words: Sequence[str]) -> list[Value]:
        """The values of a key and of the keys below it. Raises UsageError if the spec has none."""
        asked = _keys_asked(words, self.by_pattern(words))
        found = [value for steps in asked for value in self._source.values(steps)]
        if not found:
            raise UsageError(f"{self._path}: has no {' '.join(words)}")
        return found


def values_in_force(spec: Spec, section: str) -> list[Value]:
    """The values below a key of a spec that is no file: `switches`, `hosts.nic`. The origin of a
    value that the spec gives is `given`, with its role, switch or port."""
    document = Document(spec.to_mapping(), Places(Place(0, 0, GIVEN)))
    return list(_Source(spec, document, None).values(tuple(section.split("."))))


def _variant(spec: Spec, name: str) -> Spec:
    variants = spec.variants()
    if name not in variants:
        raise UsageError(
            f"there is no variant {name!r}{did_you_mean(name, variants)}; `compare:` has "
            f"{', '.join(variants) or 'none'}"
        )
    return variants[name]


def _keys_asked(words: Sequence[str], by_pattern: Sequence[str]) -> list[tuple[str, ...]]:
    """The paths that the words name: a full path, or every key of that name."""
    section = {"check": "verify.", "fault": "faults."}.get(words[0], "") if len(words) == 2 else ""
    if len(words) != 1 and not section:
        raise UsageError("--spec shows values of a key; name one key, e.g. switches.pfc.xoff")
    if keys.matching(tuple(f"{section}{by_pattern[-1]}".split("."))):
        return [tuple(f"{section}{words[-1]}".split("."))]
    called = [key.path for key in keys.called(words[0]) if keys.NAME not in key.path]
    if not called:
        raise UsageError(f"{words[0]} is not a key of a spec, so no spec has a value of it")
    return called


@dataclass(frozen=True)
class _Layer:
    """A mapping that may give a key: of one port, one switch, a role, or all."""

    path: KeyPath
    has_preset: bool


class _Source:
    def __init__(self, spec: Spec, document: Document, variant: str | None) -> None:
        self._spec, self._document, self._variant = spec, document, variant
        self._topology = spec.topology.build()
        self._dumps: dict[int, Mapping[str, Any]] = {}

    def values(self, steps: tuple[str, ...]) -> Iterator[Value]:
        match steps:
            case ("switches", "nodes" | "roles" as layer, name, *inside):
                roles = self._topology.roles
                switches = [
                    switch
                    for switch in self._topology.switches
                    if name in ((switch.name,) if layer == "nodes" else roles[switch.name])
                ]
                yield from self._of_switches(tuple(inside), switches)
            case ("switches", *inside) if not _LAYERS_THEMSELVES & {*inside[:1]}:
                yield from self._of_switches(tuple(inside), self._topology.switches)
            case ("hosts", "nodes", name, *inside):
                yield from self._of_hosts(
                    tuple(inside), [h for h in self._topology.host if h == name]
                )
            case ("hosts", "nic" | "path" as section, *inside):
                yield from self._of_hosts((section, *inside), [*self._topology.host])
            case _:
                for path in _concrete(self._whole, steps):
                    yield from self._of_spec(path)

    # --- the whole spec ---

    @cached_property
    def _whole(self) -> Any:
        return self._spec.model_dump(mode="json", by_alias=True)

    def _of_spec(self, path: KeyPath) -> Iterator[Value]:
        for leaf, value in _leaves(path, _at(self._whole, path)):
            yield Value(dotted(leaf), "", _shown(value), self._origin(leaf, ()))

    # --- switches and hosts ---

    def _of_hosts(self, inside: tuple[str, ...], hosts: Sequence[str]) -> Iterator[Value]:
        rows = {}
        for host in hosts:
            layers = [_Layer(("hosts", "nodes", host), False), _Layer(("hosts",), False)]
            dump = self._dump(self._spec.host(host))
            worked_out = _by_key(derived_of_host(self._spec, host))
            rows[host] = list(self._rows("hosts", inside, dump, layers, worked_out))
        yield from _grouped(rows, "all hosts" if len(hosts) == len(self._topology.host) else "")

    def _of_switches(self, inside: tuple[str, ...], switches: Sequence[Switch]) -> Iterator[Value]:
        rows: dict[str, list[Row]] = {}
        for switch in switches:
            layers = self._layers_of(switch.name)
            dump = self._dump(self._spec.switch(switch.name))
            if not inside or inside[0] not in _OF_PORTS:
                worked_out = _by_key(derived_of_switch(self._spec, switch.name))
                rows[switch.name] = list(self._rows("switches", inside, dump, layers, worked_out))
                continue
            for owner, row in _of_ports(
                switch.name, self._rows_of_ports(switch.name, inside, layers)
            ):
                rows.setdefault(owner, []).append(row)
        is_all = len(switches) == len(self._topology.switches)
        yield from _grouped(rows, "all switches" if is_all else "")

    def _rows_of_ports(
        self, switch: str, inside: tuple[str, ...], layers: Sequence[_Layer]
    ) -> dict[str, list[Row]]:
        """By the ports' names."""
        rows = {}
        for port in self._topology.ports[switch]:
            name = self._topology.port_name[port]
            neighbour = name.partition(":")[2]
            own = [_Layer((*layer.path, "ports", neighbour), False) for layer in layers]
            dump = self._dump(self._spec.port(port))
            worked_out = _by_key(derived(self._spec, port))
            rows[name] = list(self._rows("switches", inside, dump, [*own, *layers], worked_out))
        return rows

    def _layers_of(self, name: str) -> list[_Layer]:
        roles = [("roles", role) for role in reversed(self._topology.roles[name])]
        paths: tuple[KeyPath, ...] = (("nodes", name), *roles, ())
        return [_Layer(("switches", *path), True) for path in paths]

    def _rows(
        self,
        section: str,
        inside: tuple[str, ...],
        dump: Mapping[str, Any],
        layers: Sequence[_Layer],
        worked_out: Mapping[str, Derived],
    ) -> Iterator[Row]:
        """Key, value and origin of all keys below `inside`."""
        path, value = _as_far_as(dump, inside)
        for leaf, own in _leaves((section, *path), value):
            own_keys = tuple(map(str, leaf[1:]))
            if own_keys[0] in _LAYERS_THEMSELVES:
                continue
            known = worked_out.get(dotted(leaf))
            if known is not None:
                yield known.key, _worked_out(own, known), known.origin
            else:
                yield dotted(leaf), _shown(own), self._layered_origin(own_keys, layers)

    def _dump(self, merged: Model) -> Mapping[str, Any]:
        """The data of merged settings, computed once for all nodes that share them."""
        if id(merged) not in self._dumps:
            self._dumps[id(merged)] = merged.model_dump(mode="json", by_alias=True)
        return self._dumps[id(merged)]

    # --- origins ---

    def _layered_origin(self, own: tuple[str, ...], layers: Sequence[_Layer]) -> str:
        presets_count = True
        for layer in layers:
            path = (*layer.path, *own)
            if has(self._spec.written, path):
                return self._origin(path, layer.path)
            if self._is_switched_off(layer, own):
                return "default"
            if presets_count and layer.has_preset:
                name = _at(self._spec.written, (*layer.path, "preset"))
                preset = PRESETS.get(name)
                given = preset.model_dump(by_alias=True, exclude_unset=True) if preset else {}
                if has(given, own):
                    return f"preset {name}, {self._origin((*layer.path, 'preset'), layer.path)}"
                presets_count = name is None or (preset is not None and own[0] not in given)
        return "default"

    def _is_switched_off(self, layer: _Layer, own: tuple[str, ...]) -> bool:
        """Whether this layer switches off a section that an earlier layer may give."""
        sections = (
            _at(self._spec.written, (*layer.path, *own[:end])) for end in range(1, len(own))
        )
        return any(section is not None and not isinstance(section, Mapping) for section in sections)

    def _origin(self, path: KeyPath, layer: KeyPath) -> str:
        """The place of a key in the file, and the role, switch or port that it applies to."""
        if not has(self._spec.written, path):
            return "default"
        place = self._place(path)
        who = {"roles": "role", "nodes": "node", "ports": "port to"}
        whose = [f"{who[str(k)]} {n}" for k, n in pairwise(layer) if k in who]
        return f"{', '.join(whose)} ({place})" if whose else place

    def _place(self, path: KeyPath) -> str:
        compare: KeyPath = ("compare", self._variant or "", *path)
        is_own = self._variant is not None and has(self._document.data, compare)
        return str(self._document.places[compare if is_own else path])


def _by_key(found: Iterable[Derived]) -> dict[str, Derived]:
    return {own.key: own for own in found}


def _worked_out(own: Any, known: Derived) -> str:
    return f"auto: {known.value}" if own == "auto" else known.value


def _of_ports(switch: str, ports: Mapping[str, Sequence[Row]]) -> Iterator[tuple[str, Row]]:
    """Each row with its owner: a port, or the switch if all of its ports have the row."""
    owners: dict[Row, list[str]] = {}
    for name, own in ports.items():
        for row in own:
            owners.setdefault(row, []).append(name)
    for row, names in owners.items():
        yield from ((owner, row) for owner in ([switch] if len(names) == len(ports) else names))


def _grouped(rows: Mapping[str, Sequence[Row]], all_owners: str) -> Iterator[Value]:
    """The values in the order of the keys, with equal rows of several owners joined. `all_owners`:
    the word for all owners together; empty: their names."""
    owners: dict[Row, list[str]] = {}
    for owner, own in rows.items():
        for row in own:
            owners.setdefault(row, []).append(owner)
    order = {key: place for place, key in enumerate(dict.fromkeys(row[0] for row in owners))}
    for row in sorted(owners, key=lambda row: order[row[0]]):
        names = owners[row]
        key, value, origin = row
        is_all = all_owners and len(names) == len(rows)
        yield Value(key, all_owners if is_all else shortened(names, _NAMES_SHOWN), value, origin)


def _shown(value: Any) -> str:
    return "not given" if value is None else written(value)


def _at(value: Any, path: Iterable[str | int]) -> Any:
    """The value at a path; None if there is none."""
    for step in path:
        if isinstance(value, list) and isinstance(step, int):
            value = value[step]
        elif isinstance(value, Mapping):
            value = value.get(step)
        else:
            return None
    return value


def _as_far_as(dump: Mapping[str, Any], inside: tuple[str, ...]) -> tuple[tuple[str, ...], Any]:
    """The value at a path, or the section around it that is off."""
    value: Any = dump
    for end, step in enumerate(inside):
        if not isinstance(value, Mapping) or step not in value:
            return inside[:end], value
        value = value[step]
    return inside, value


def _leaves(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, Any]]:
    """The keys below a path that hold values. A mapping by names is one value."""
    if isinstance(value, Mapping) and value and _has_keys(path):
        for key, inner in value.items():
            yield from _leaves((*path, key), inner)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for index, inner in enumerate(value):
            yield from _leaves((*path, index), inner)
    elif value is not None or not _is_choice(path):
        yield path, value


@cache
def _has_keys(path: KeyPath) -> bool:
    found = keys.matching(tuple(map(str, path)))
    return not path or any(
        "properties" in (node := keys.resolved(key.node)) or "discriminator" in node
        for key in found
    )


def _is_choice(path: KeyPath) -> bool:
    """Whether the path is a kind of check or fault, of which an entry has only one."""
    return path[0] in ("verify", "faults") and len(path) == 3


def _concrete(value: Any, steps: tuple[str, ...]) -> Iterator[KeyPath]:
    """The paths in a spec that the steps name. `traffic.incast.size` names the size of the entry
    `incast`, or of all entries of that pattern. A kind or pattern has no step in the path."""
    if not steps:
        yield ()
        return
    step, rest = steps[0], steps[1:]
    if isinstance(value, list):
        named = [i for i, entry in enumerate(value) if _name(entry) == step]
        entries = [int(step)] if step.isdigit() and int(step) < len(value) else named
        for index in entries or range(len(value)):
            inside = rest if entries else steps
            yield from ((index, *path) for path in _concrete(value[index], inside))
    elif isinstance(value, Mapping):
        if value.get(step) is not None or (step in value and not rest):
            yield from ((step, *path) for path in _concrete(value[step], rest))
        elif step in (value.get("kind"), value.get("pattern")):
            yield from _concrete(value, rest)


def _name(entry: Any) -> str | None:
    return entry.get("name") if isinstance(entry, Mapping) else None
