"""Rules for the fabric's graph before it can be built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from emu.limits import MAX_HOSTS, MAX_SWITCH_PORTS
from emu.spec.diagnostic import Diagnostic, KeyPath, did_you_mean, unknown_name
from emu.spec.scenario import Spec
from emu.spec.topology import Graph
from topologies.distance import distances

LONGEST_INTERFACE = 15
"""Linux's IFNAMSIZ without the terminating zero."""

_TOPOLOGY: KeyPath = ("topology",)
_HOSTS: KeyPath = ("topology", "hosts")
_SWITCHES: KeyPath = ("topology", "switches")
_LINKS: KeyPath = ("topology", "links")


def hosts_are_not_too_many(spec: Spec) -> Iterator[Diagnostic]:
    if spec.topology.host_count > MAX_HOSTS:
        yield Diagnostic(
            _TOPOLOGY,
            f"makes {spec.topology.host_count} hosts; {MAX_HOSTS} is the most there can be",
        )


def switches_are_not_too_large(spec: Spec) -> Iterator[Diagnostic]:
    ports = spec.topology.most_ports
    if ports > MAX_SWITCH_PORTS:
        yield Diagnostic(
            _TOPOLOGY,
            f"makes a switch with {ports} ports; {MAX_SWITCH_PORTS} is the most there can be, so "
            "use more switches",
        )


def free_graphs_are_sound(spec: Spec) -> Iterator[Diagnostic]:
    if isinstance(spec.topology, Graph):
        yield from _names_are_unique(spec.topology)
        yield from _cables_join_two_nodes(spec.topology)
        yield from _hosts_have_one_cable(spec.topology)
        yield from _all_is_connected(spec.topology)


def _names_are_unique(graph: Graph) -> Iterator[Diagnostic]:
    count = Counter((*graph.hosts, *graph.switches))
    for path, names in ((_HOSTS, graph.hosts), (_SWITCHES, graph.switches)):
        for index, name in enumerate(names):
            if count[name] > 1:
                text = f"{name!r} names {count[name]} nodes; give each a name of its own"
                yield Diagnostic((*path, index), text)


def _cables_join_two_nodes(graph: Graph) -> Iterator[Diagnostic]:
    known = list(dict.fromkeys((*graph.hosts, *graph.switches)))
    for index, link in enumerate(graph.links):
        path = (*_LINKS, index, "between")
        for name in link.between:
            if name not in known:
                yield Diagnostic(path, unknown_name("node", name, known), (_HOSTS, _SWITCHES))
        if link.between[0] == link.between[1]:
            yield Diagnostic(path, f"joins {link.between[0]} to itself; a cable needs two nodes")
        elif set(graph.hosts).issuperset(link.between):
            text = "joins two hosts, and hosts never forward; put a switch between them"
            yield Diagnostic(path, text, (_HOSTS,))


def _hosts_have_one_cable(graph: Graph) -> Iterator[Diagnostic]:
    cables = Counter(name for link in graph.links for name in link.between)
    for index, name in enumerate(graph.hosts):
        if cables[name] != 1:
            text = f"{name} has {cables[name]} cables; a host has exactly one"
            yield Diagnostic((*_HOSTS, index), text, (_LINKS,))


def _all_is_connected(graph: Graph) -> Iterator[Diagnostic]:
    neighbours: dict[str, list[str]] = {}
    for a, b in (link.between for link in graph.links):
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    for name in (*graph.hosts, *graph.switches):
        neighbours.setdefault(name, [])
    part = distances(neighbours, list(neighbours)[:1])
    apart = next((name for name in neighbours if name not in part), None)
    if apart is not None:
        other = min(distances(neighbours, (apart,)))
        text = f"no path leads from {min(part)} to {other}; add a cable between their parts"
        yield Diagnostic(_LINKS, text, (_TOPOLOGY,))


def interface_names_are_short_enough(spec: Spec) -> Iterator[Diagnostic]:
    """Runs after the rules for a valid graph, since it examines every port."""
    topology = spec.topology
    for node, ports in topology.build().ports.items():
        longest = ports[-1].interface
        if len(longest) > LONGEST_INTERFACE:
            yield Diagnostic(
                (*_SWITCHES, topology.switches.index(node))
                if isinstance(topology, Graph)
                else _TOPOLOGY,
                f"{node} has {len(ports)} cables, so one of its interfaces would be called "
                f"{longest!r}, and Linux allows {LONGEST_INTERFACE} characters; "
                "give it a shorter name or fewer cables",
                about=(_TOPOLOGY,),
            )


def different_cables_exist(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    known = list(topology.port_named)
    first: dict[object, int] = {}
    for index, one in enumerate(spec.topology.cables):
        path = ("topology", "cables", index, "cable")
        if one.cable not in known:
            hint = did_you_mean(one.cable, known) or f"; cables are called like {known[0]}"
            yield Diagnostic(path, f"there is no cable {one.cable!r}{hint}", (_TOPOLOGY,))
            continue
        port = topology.port_named[one.cable]
        earlier = first.setdefault(frozenset((port, topology.peer[port])), index)
        if earlier != index:
            other = spec.topology.cables[earlier].cable
            text = f"this cable is listed already, as {other}; put its settings into one entry"
            yield Diagnostic(path, text, (("topology", "cables", earlier),))


def hosts_of_a_result_are_counted(spec: Spec) -> Iterator[Diagnostic]:
    """`about.hosts` names the key that `emu results --hosts` changes."""
    key = spec.about.hosts if spec.about else None
    counts = [name for name in type(spec.topology).model_fields if name.startswith("hosts_per")]
    if key is not None and key.removeprefix("topology.") not in counts:
        kind = spec.topology.kind
        remedy = f"name topology.{counts[0]}" if counts else "say one_size instead"
        text = f"kind: {kind} has no {key}; {remedy}"
        yield Diagnostic(("about", "hosts"), text, (_TOPOLOGY,), idle_if_inherited=True)


SOUND = (hosts_are_not_too_many, switches_are_not_too_large, free_graphs_are_sound)
RULES = (
    interface_names_are_short_enough,
    different_cables_exist,
    hosts_of_a_result_are_counted,
)
