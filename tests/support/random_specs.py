"""Random fabrics, settings and workloads, for properties that hold for all of them.

Strategies give mappings as in a spec file, so that a counter-example reads like one.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from emu.spec.model import Spec

Yaml = dict[str, Any]

DELAYS = st.sampled_from(["0ns", "50ns", "500ns", "2us"])
LINK = st.fixed_dictionaries(
    {"rate": st.sampled_from(["100Gbit", "10Gbit", "25Gbit", "400Gbit"]), "delay": DELAYS}
)
KEEPING_ORDER = ("ecmp", "ecmp-qp")
RECOVERIES = st.sampled_from(["go-back-n", "selective-repeat"])
ROUTING = st.sampled_from([*KEEPING_ORDER, "flowlet", "spray", "adaptive"])
DROPS = (
    "rx_buf_discard",
    "tx_queue_discard",
    "watchdog_tx_dropped",
    "watchdog_rx_dropped",
    "no_route",
    "ttl_expired",
    "not_ip",
    "rx_malformed",
    "rx_oversize",
    "corrupt",
    "link_down_discard",
)
"""Counters of packets that are dropped at a port of either fabric, each in exactly one."""


def _kind(kind: str, *links: str, **sizes: st.SearchStrategy[int]) -> st.SearchStrategy[Yaml]:
    drawn = {"links": st.fixed_dictionaries(dict.fromkeys(links or ("host", "fabric"), LINK))}
    return st.fixed_dictionaries({"kind": st.just(kind), **sizes, **drawn})


@st.composite
def _trees(draw: st.DrawFn) -> Yaml:
    """One switch or several in a tree, with hosts at any of them."""
    switches = [f"s{number + 1}" for number in range(draw(st.integers(1, 4)))]
    hosts = [f"h{number + 1}" for number in range(draw(st.integers(2, 8)))]
    cables = [
        [draw(st.sampled_from(switches[:number])), switches[number]]
        for number in range(1, len(switches))
    ]
    cables += [[draw(st.sampled_from(switches)), host] for host in hosts]
    links = [{"between": ends} | draw(LINK) for ends in cables]
    return {"kind": "graph", "switches": switches, "hosts": hosts, "links": links}


_few, _some = st.integers(1, 2), st.integers(2, 4)
KINDS = st.one_of(
    _trees(),
    _kind("dumbbell", hosts_per_side=_some),
    _kind("leaf-spine", leaves=st.integers(2, 3), spines=st.integers(1, 3), hosts_per_leaf=_some),
    _kind("parking-lot", switches=_some, hosts_per_switch=_few),
    _kind("rail", servers=_some, rails=st.integers(1, 3), spines=_few),
    _kind("ring", switches=st.integers(3, 6), hosts_per_switch=_few),
    _kind("fat-tree", "host", "edge", "core", k=st.sampled_from([2, 4])),
)


@st.composite
def topologies(draw: st.DrawFn) -> Yaml:
    """Two to sixteen hosts; up to three cables differ from the others."""
    drawn: Yaml = draw(KINDS)
    names = st.sampled_from(cables_of(drawn))
    odd = draw(st.dictionaries(names, LINK, max_size=3))
    return drawn | {"cables": [{"cable": cable, **link} for cable, link in odd.items()]}


def cables_of(topology: Yaml) -> list[str]:
    """Each cable of a topology by one of its ports."""
    built = Spec.model_validate({"name": "drawn", "topology": topology}).topology.build()
    return [built.port_name[cable.a] for cable in built.cables]


def switch_ports_of(topology: Yaml) -> list[str]:
    built = Spec.model_validate({"name": "drawn", "topology": topology}).topology.build()
    return [name for name, port in built.port_named.items() if port.node in built.switch]


def hosts_of(topology: Yaml) -> list[str]:
    spec = Spec.model_validate({"name": "drawn", "topology": topology})
    return [host.name for host in spec.topology.build().hosts]


_COLLECTIVES = st.sampled_from(
    [
        {"pattern": "all-reduce", "algorithm": "ring"},
        {"pattern": "all-reduce", "algorithm": "tree"},
        {"pattern": "all-reduce", "algorithm": "double-tree"},
        {"pattern": "all-gather"},
        {"pattern": "reduce-scatter"},
        {"pattern": "broadcast"},
        {"pattern": "alltoall"},
    ]
)
_CHUNK = st.sampled_from([{}, {"chunk": "5KB"}])


@st.composite
def _entry(draw: st.DrawFn, hosts: list[str]) -> Yaml:
    """One entry of traffic. Patterns with one receiver mostly use the first host. In a round every
    host sends to the one `on` places further, which can deadlock a ring."""
    patterns = ["pair", "pair", "incast", "round", "permutation", "all-to-all", "job"]
    pattern = draw(st.sampled_from(patterns))
    if pattern == "round":
        on = draw(st.integers(1, len(hosts) - 1))
        turned = {"pattern": "pair", "from": hosts, "to": hosts[on:] + hosts[:on], "op": "write"}
        return turned | {"size": draw(st.sampled_from([150_000, 400_000]))}
    if pattern == "job":
        return draw(_COLLECTIVES) | {"among": hosts, "size": "60KB"} | draw(_CHUNK)
    entry: Yaml = {"pattern": pattern, "op": draw(st.sampled_from(["write", "send", "read"]))}
    entry["size"] = draw(st.sampled_from([150_000, 60_001, 20_000, 1]))
    if pattern == "permutation":
        return entry | {"among": hosts}
    if pattern == "all-to-all":
        return entry | {"among": hosts[-5:], "size": min(entry["size"], 20_000)}
    to = draw(st.sampled_from([hosts[0], hosts[0], *hosts]))
    others = [host for host in hosts if host != to]
    if pattern == "incast":
        return entry | {"from": others, "to": to}
    size = draw(st.sampled_from([entry["size"], 400_000]))
    return entry | {"from": draw(st.sampled_from(others)), "to": to, "size": size}


@st.composite
def traffic(draw: st.DrawFn, hosts: list[str], priorities: st.SearchStrategy[int]) -> list[Yaml]:
    """Pairs, incasts, rounds, permutations, all-to-alls and collectives, side by side."""
    return [
        {"name": f"t{number}", **entry, "priority": draw(priorities), "start": draw(DELAYS)}
        for number, entry in enumerate(draw(st.lists(_entry(hosts), min_size=1, max_size=6)))
    ]
