"""A topology of containerlab (`*.clab.yml`) -> a spec: its nodes and links.

    kind linux                    a host with the interface of its link
    any other kind                a switch
    endpoints: [leaf1:e1-1, h1:eth1]    a cable

containerlab's links have neither rate nor length, and its switches get their settings inside of the
containers: all of that is emu's default. A node of kind linux with several links is a host for each
of them, unless it is named as a switch: it may be a router (FRR).

Source: containerlab's manual, topology definition.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from emu.errors import SpecError, UsageError
from emu.imports.report import Report, Row
from emu.imports.starter_traffic import starter_traffic
from emu.regular import read_regular
from emu.spec.diagnostic import Diagnostic, KeyPath, lines, unknown_name
from emu.spec.document import MAX_BYTES, Document, Unreadable, read
from emu.spec.from_code import spec_from_mapping
from topologies.text.net import names_for

_HOST_KINDS = ("linux", "ext-container", "k8s-kind", "generic_vm")
_OUTSIDE = ("host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy")
"""Names before the colon of an endpoint, and types of links, that lead out of the lab."""
_NO_CONTAINER = "emu runs no containers"
_WHY = {
    "name": "a spec is called like its file",
    "mgmt": "management is outside of the fabric",
}


class Endpoint(NamedTuple):
    """One end of a link, by containerlab's names."""

    node: str
    interface: str


@dataclass(frozen=True)
class ImportedLab:
    """A spec that was made from a topology of containerlab."""

    data: dict[str, Any]
    """Its keys."""
    hosts: int
    report: Report


def import_containerlab(
    path: Path, *, switches: Sequence[str] = (), rate: str = "100Gbit", length: str = "5m"
) -> ImportedLab:
    """The spec of a topology. `switches`: nodes of kind linux that are switches. Rate and length
    are those of all links. Raises UsageError, SpecError with all mistakes."""
    document = _document(path)
    lab = _Lab(document, str(path), switches)
    links = lab.links()
    lab.check()
    data = lab.data(links, {"rate": rate, "length": length})
    spec_from_mapping({"name": "imported", **data}, source=f"{path} as a spec", folder=Path())
    return ImportedLab(data, len(data["topology"]["hosts"]), lab.report)


def _document(path: Path) -> Document:
    try:
        return read(read_regular(path, MAX_BYTES), str(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except Unreadable as unreadable:
        raise SpecError([f"{unreadable.finding.place}: {unreadable}"]) from None


class _Lab:
    """The parts of a topology file. Mistakes are collected, with their places."""

    def __init__(self, document: Document, file: str, switches: Sequence[str]) -> None:
        self._document = document
        self._file = file
        self._findings: list[Diagnostic] = list(document.findings)
        self.report = Report()
        self._topology = self._section(document.data, "topology")
        self._nodes = self._section(self._topology, "nodes", ("topology",))
        self._kinds = {name: self._kind(name, node) for name, node in self._nodes.items()}
        self._switches = {
            name
            for name, kind in self._kinds.items()
            if name in switches or kind not in _HOST_KINDS
        }
        for name in switches:
            if name not in self._nodes:
                raise UsageError(f"--switch: {unknown_name('node', name, list(self._nodes))}")
        self._note_rest()

    def check(self) -> None:
        """Raises SpecError if there are any mistakes."""
        if self._findings:
            raise SpecError(lines(self._findings, self._document.places))

    def links(self) -> list[tuple[Endpoint, Endpoint]]:
        """The links between nodes of the lab."""
        given = self._topology.get("links")
        if not isinstance(given, list) or not given:
            self._wrong(
                ("topology", "links"), 'must be a list, e.g. - endpoints: ["a:eth1", "b:eth1"]'
            )
            return []
        found: list[tuple[Endpoint, Endpoint]] = []
        used: dict[Endpoint, int] = {}
        for index, link in enumerate(given):
            ends = self._ends(index, link)
            if ends is None:
                continue
            for end in ends:
                if used.setdefault(end, index) != index:
                    text = f"{end.node}:{end.interface} is in topology.links.{used[end]}, too"
                    self._wrong(("topology", "links", index), f"{text}; an interface has one link")
            if ends[0].node == ends[1].node:
                self._wrong(("topology", "links", index), "joins a node to itself")
            elif not {end.node for end in ends} & self._switches:
                self._wrong(
                    ("topology", "links", index),
                    f"joins two hosts, and hosts never forward; if {ends[0].node} or "
                    f"{ends[1].node} is a router, name it by --switch",
                )
            found.append(ends)
        return found

    def data(
        self, links: Sequence[tuple[Endpoint, Endpoint]], cable: Mapping[str, str]
    ) -> dict[str, Any]:
        """The keys of the spec."""
        names = self._names(links)
        made, devices = [], self._devices(names)
        for a, b in links:
            pair = [names[end if end.node not in self._switches else end.node] for end in (a, b)]
            made.append({"between": pair, **cable})
        _add_ports(devices, links, made)
        hosts = [name for end, name in names.items() if isinstance(end, Endpoint)]
        return {
            "topology": {
                "kind": "graph",
                "switches": [name for end, name in names.items() if isinstance(end, str)],
                "hosts": hosts,
                "links": made,
            },
            **({"traffic": traffic} if (traffic := starter_traffic(len(hosts))) else {}),
            "devices": devices,
        }

    def _names(self, links: Sequence[tuple[Endpoint, Endpoint]]) -> dict[str | Endpoint, str]:
        """emu's name of each switch, by its name, and of each host, by the end of its link."""
        ends = [end for link in links for end in link]
        switches = list(dict.fromkeys(end.node for end in ends if end.node in self._switches))
        hosts = sorted(end for end in ends if end.node not in self._switches)
        hosts.sort(key=lambda end: list(self._nodes).index(end.node))
        count = Counter(end.node for end in hosts)
        for name in self._nodes:
            row = Row(self._file, "nodes", name)
            if name not in {end.node for end in ends}:
                self.report.ignored(row, "no link of the lab leads there")
            elif count[name] > 1:
                text = f"it has {count[name]} links, and is a host for each; --switch {name} "
                self.report.approximated(row, f"{text}makes it a switch")
        taken: set[str] = set()
        names: dict[str | Endpoint, str] = {}
        wanted = [re.sub("[^A-Za-z0-9_]", "", name) for name in switches]
        names |= zip(switches, names_for(wanted, "s", taken), strict=True)
        wanted = [re.sub("[^A-Za-z0-9_]", "", end.node) for end in hosts]
        return names | dict(zip(hosts, names_for(wanted, "h", taken), strict=True))

    def _devices(self, names: Mapping[str | Endpoint, str]) -> dict[str, dict[str, Any]]:
        devices: dict[str, dict[str, Any]] = {}
        for end, name in names.items():
            node = end.node if isinstance(end, Endpoint) else end
            kind = self._kinds[node]
            devices[name] = {"name": node} if node != name else {}
            devices[name] |= {"model": kind} if kind and node in self._switches else {}
        return devices

    def _kind(self, name: str, node: Any) -> str | None:
        """The kind of a node, its own or that of its group or of all nodes."""
        path = ("topology", "nodes", name)
        if node is not None and not isinstance(node, dict):
            self._wrong(path, "must be a mapping, e.g. {kind: linux}")
            return None
        own = node or {}
        groups, defaults = self._topology.get("groups"), self._topology.get("defaults")
        group = groups.get(own.get("group")) if isinstance(groups, dict) else None
        layers = (own, group, defaults)
        kinds = [layer["kind"] for layer in layers if isinstance(layer, dict) and "kind" in layer]
        if not kinds:
            self._wrong(path, "has no kind; give it one, e.g. kind: linux for a host")
            return None
        kind = str(kinds[0])
        what = "host" if kind in _HOST_KINDS else "switch"
        self.report.taken(Row(self._file, "nodes", name, "kind"), f"{kind} is a {what}")
        return kind

    def _ends(self, index: int, link: Any) -> tuple[Endpoint, Endpoint] | None:
        """Both ends of a link; None: it is left out, or a mistake has been noted."""
        path: KeyPath = ("topology", "links", index)
        row = Row(self._file, "links", str(index))
        if not isinstance(link, dict):
            self._wrong(path, 'must be a mapping, e.g. endpoints: ["a:eth1", "b:eth1"]')
            return None
        if link.get("type", "veth") != "veth":
            self.report.ignored(row, f"a link of type {link['type']} leads out of the lab")
            return None
        given = link.get("endpoints")
        if not isinstance(given, list) or len(given) != 2:
            self._wrong((*path, "endpoints"), 'are two ends, e.g. ["a:eth1", "b:eth1"]')
            return None
        ends = [self._end((*path, "endpoints", place), end) for place, end in enumerate(given)]
        if any(end is not None and end.node in _OUTSIDE for end in ends):
            self.report.ignored(row, "it leads out of the lab")
            return None
        if ends[0] is None or ends[1] is None:
            return None
        for end in ends:
            if end is not None and end.node not in self._nodes:
                known = list(self._nodes)
                self._wrong((*path, "endpoints"), unknown_name("node", end.node, known))
                return None
        for key in sorted(link.keys() - {"endpoints", "type"}):
            self.report.ignored(
                Row(self._file, "links", str(index), key), "emu's cables have rate and length alone"
            )
        self.report.taken(row, "topology.links; rate and length are those of the command line")
        return ends[0], ends[1]

    def _end(self, path: KeyPath, end: Any) -> Endpoint | None:
        if isinstance(end, dict) and isinstance(end.get("node"), str):
            return Endpoint(end["node"], str(end.get("interface", "")))
        if isinstance(end, str) and re.fullmatch("[^:]+:[^:]+", end):
            return Endpoint(*end.split(":"))
        self._wrong(path, "is a node and its interface, e.g. leaf1:eth1")
        return None

    def _section(self, data: Any, key: str, path: KeyPath = ()) -> dict[str, Any]:
        found = data.get(key) if isinstance(data, dict) else None
        if isinstance(found, dict) and found:
            return found
        if not self._findings:
            self._wrong((*path, key), "is missing; a topology has nodes and links")
        return {}

    def _note_rest(self) -> None:
        """Notes all keys that nothing reads."""
        data = self._document.data if isinstance(self._document.data, dict) else {}
        for key in data:
            if key != "topology":
                self.report.ignored(Row(self._file, str(key)), _WHY.get(str(key), _NO_CONTAINER))
        for key in self._topology.keys() - {"nodes", "links", "groups", "defaults"}:
            self.report.ignored(Row(self._file, "topology", str(key)), _NO_CONTAINER)
        for key in ("groups", "defaults"):
            if key in self._topology:
                row = Row(self._file, "topology", key)
                self.report.ignored(row, f"all but the kind: {_NO_CONTAINER}")
        for name, node in self._nodes.items():
            for key in node if isinstance(node, dict) else ():
                if key != "kind":
                    row = Row(self._file, "nodes", name, str(key))
                    self.report.ignored(row, _NO_CONTAINER)

    def _wrong(self, path: KeyPath, what: str) -> None:
        self._findings.append(Diagnostic(path, what))


def _add_ports(
    devices: dict[str, dict[str, Any]],
    links: Sequence[tuple[Endpoint, Endpoint]],
    made: Sequence[Mapping[str, Any]],
) -> None:
    """Adds the names of interfaces. A second link between two nodes is called `spine1#2`."""
    seen: Counter[tuple[str, str]] = Counter()
    for ends, link in zip(links, made, strict=True):
        for end, own, far in _both_ways(ends, link["between"]):
            seen[own, far] += 1
            port = far if seen[own, far] == 1 else f"{far}#{seen[own, far]}"
            if end.interface:
                devices[own].setdefault("ports", {})[port] = end.interface


def _both_ways(
    ends: tuple[Endpoint, Endpoint], names: Sequence[str]
) -> Iterator[tuple[Endpoint, str, str]]:
    yield ends[0], names[0], names[1]
    yield ends[1], names[1], names[0]
