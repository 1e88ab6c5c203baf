"""Invariants of every topology: ports, names, addresses, and shortest paths."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.spec.model import Graph, LeafSpine
from topologies.distance import distances
from topologies.dumbbell import dumbbell
from topologies.fat_tree import fat_tree
from topologies.graph import Topology, Wire
from topologies.leaf_spine import leaf_spine
from topologies.parking_lot import parking_lot
from topologies.rail import rail
from topologies.ring import ring
from topologies.torus import torus

CABLES = {
    "host_wire": Wire(25_000_000_000, 25_000),
    "fabric_wire": Wire(100_000_000_000, 500_000),
}

FAT_TREE_CABLES = {
    "host_wire": Wire(25_000_000_000, 25_000),
    "edge_wire": Wire(50_000_000_000, 50_000),
    "core_wire": Wire(100_000_000_000, 500_000),
}

RING = Graph.model_validate(
    {
        "kind": "graph",
        "hosts": ["a", "b", "c", "d"],
        "switches": ["sw1", "sw2", "sw3", "sw4"],
        "links": [
            {"between": ["sw1", "sw2"]},
            {"between": ["sw2", "sw3"], "rate": "400Gbit", "delay": "1us"},
            {"between": ["sw3", "sw4"]},
            {"between": ["sw4", "sw1"]},
            {"between": ["sw1", "sw2"], "length": "10m"},
            {"between": ["sw1", "a"]},
            {"between": ["b", "sw2"]},
            {"between": ["sw3", "c"]},
            {"between": ["sw4", "d"]},
        ],
    }
)


def _check(topology: Topology) -> None:
    """Checks every invariant."""
    _ports_are_plugged_once(topology)
    _addresses_are_unique(topology)
    _distances_are_networkx_s(topology)
    _next_hops_are_the_shortest_paths(topology)


def _ports_are_plugged_once(topology: Topology) -> None:
    ports = [port for cable in topology.cables for port in (cable.a, cable.b)]
    assert len(set(ports)) == len(ports) == len(topology.port_named)
    for switch in topology.switches:
        numbers = [port.number for port in topology.ports[switch.name]]
        assert numbers == list(range(1, len(numbers) + 1))
    for host in topology.hosts:
        assert [port.number for port in topology.ports[host.name]] == [0]
    assert all(len(port.interface) <= 15 for port in ports)


def _addresses_are_unique(topology: Topology) -> None:
    macs = Counter(port.mac for own in topology.ports.values() for port in own)
    addresses = Counter(host.ip for host in topology.hosts)
    assert {*macs.values(), *addresses.values()} == {1}


def _distances_are_networkx_s(topology: Topology) -> None:
    expected = nx.multi_source_dijkstra_path_length(nx.Graph(topology.graph), set(topology.host))
    assert distances(topology.neighbours, topology.host) == expected


def _next_hops_are_the_shortest_paths(topology: Topology) -> None:
    """Compares the first hops of all shortest paths through switches with networkx."""
    graph = nx.Graph(topology.graph)
    for switch in topology.switches:
        for host in topology.hosts:
            through = graph.subgraph({s.name for s in topology.switches} | {host.name})
            paths = nx.all_shortest_paths(through, switch.name, host.name)
            hops = topology.next_hops[switch.name][host.name]
            assert topology.hops(switch.name, host.name) == hops
            assert {topology.peer[port].node for port in hops} == {path[1] for path in paths}
            assert list(hops) == sorted(hops, key=lambda port: port.number)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_leaf_spine(spines: int, leaves: int, hosts_per_leaf: int) -> None:
    """Every leaf connects to every spine; hosts are numbered leaf by leaf; there are as many paths
    as spines."""
    topology = leaf_spine(spines, leaves, hosts_per_leaf, **CABLES)
    _check(topology)
    assert len(topology.cables) == leaves * (spines + hosts_per_leaf)
    if leaves > 1:
        last = topology.hosts[-1].name
        assert len(topology.next_hops["leaf1"][last]) == spines


@given(st.integers(1, 6))
def test_dumbbell(hosts_per_side: int) -> None:
    """Two switches, one cable between them."""
    topology = dumbbell(hosts_per_side, **CABLES)
    _check(topology)
    between = topology.cable[topology.port_named["left:right"]]
    assert (between.rate_bps, between.delay_ps) == (100_000_000_000, 500_000)
    assert topology.peer[topology.ports["h1"][0]].node == "left"
    assert topology.peer[topology.ports[f"h{hosts_per_side + 1}"][0]].node == "right"


@given(st.integers(2, 6), st.integers(1, 3))
def test_parking_lot(switches: int, hosts_per_switch: int) -> None:
    """From the first switch to the last there is one path, over all the others."""
    topology = parking_lot(switches, hosts_per_switch, **CABLES)
    _check(topology)
    assert len(topology.cables) == switches * hosts_per_switch + switches - 1
    first, last = topology.hosts[0].name, topology.hosts[-1].name
    assert nx.shortest_path_length(topology.graph, first, last) == switches + 1


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_rail(servers: int, rails: int, spines: int) -> None:
    """NICs of the same rank in their servers share a switch; NICs of a server have consecutive
    numbers."""
    topology = rail(servers, rails, spines, **CABLES)
    _check(topology)
    for number, nic in enumerate(topology.hosts):
        assert topology.peer[topology.ports[nic.name][0]].node == f"rail{number % rails + 1}"
        assert topology.peer[topology.ports[nic.name][0]].number == number // rails + 1


def test_single_cables_can_differ() -> None:
    """By either port's name; other attributes stay the same."""
    plain = {"kind": "leaf-spine", "spines": 2, "leaves": 2, "hosts_per_leaf": 1}
    cables = [{"cable": "spine2:leaf1", "rate": "25Gbit"}, {"cable": "leaf2:h2", "length": "1km"}]
    before = LeafSpine.model_validate(plain).build()
    after = LeafSpine.model_validate(plain | {"cables": cables}).build()
    _check(after)
    changed = [
        (after.port_name[new.a], new.rate_bps, new.delay_ps)
        for old, new in zip(before.cables, after.cables, strict=True)
        if old != new
    ]
    assert changed == [
        ("leaf1:spine2", 25_000_000_000, 25_000),
        ("leaf2:h2", 100_000_000_000, 5_000_000),
    ]


@pytest.mark.parametrize("k", [2, 4, 6])
def test_fat_tree(k: int) -> None:
    """k^3/4 hosts, 5k^2/4 switches of k ports, as many paths between pods as cores."""
    topology = fat_tree(k, **FAT_TREE_CABLES)
    _check(topology)
    assert len(topology.hosts) == k**3 // 4
    assert Counter(switch.role for switch in topology.switches) == {
        "core": k**2 // 4,
        "aggregation": k**2 // 2,
        "edge": k**2 // 2,
    }
    assert {len(topology.ports[switch]) for switch in topology.switch} == {k}
    first, last = topology.hosts[0].name, topology.hosts[-1].name
    through = topology.graph.subgraph({*topology.switch, first, last})
    assert len(list(nx.all_shortest_paths(nx.Graph(through), first, last))) == k**2 // 4


def test_each_tier_of_a_fat_tree_has_its_own_cables() -> None:
    """Host, edge and core cables; a core's port N leads to pod N."""
    topology = fat_tree(4, **FAT_TREE_CABLES)
    cables = [topology.cable[topology.port_named[name]] for name in ("edge1:h2", "edge1:agg2")]
    cables.append(topology.cable[topology.port_named["agg2:core3"]])
    assert [cable.delay_ps for cable in cables] == [25_000, 50_000, 500_000]
    pods = [topology.peer[port].node for port in topology.ports["core3"]]
    assert pods == ["agg2", "agg4", "agg6", "agg8"]


def test_fat_tree_of_a_thousand_hosts_is_routed() -> None:
    """k = 16: every switch has a path to every host, and hosts of one edge share it."""
    topology = fat_tree(16, **FAT_TREE_CABLES)
    assert (len(topology.hosts), len(topology.switches), len(topology.cables)) == (1024, 320, 3072)
    assert all(len(routes) == 1024 for routes in topology.next_hops.values())
    assert topology.next_hops["core1"]["h1"] is topology.next_hops["core1"]["h8"]
    assert len(topology.next_hops["edge1"]["h1024"]) == 8


@given(st.integers(3, 7), st.integers(1, 3))
def test_ring(switches: int, hosts_per_switch: int) -> None:
    """Every switch has two neighbours; an even ring has two paths to its far side."""
    topology = ring(switches, hosts_per_switch, **CABLES)
    _check(topology)
    assert {len(topology.ports[name]) for name in topology.switch} == {hosts_per_switch + 2}
    fabric = topology.graph.subgraph(topology.switch)
    assert nx.is_isomorphic(nx.Graph(fabric), nx.cycle_graph(switches))
    opposite = topology.hosts[switches // 2 * hosts_per_switch].name
    assert len(topology.next_hops["ring1"][opposite]) == (2 if switches % 2 == 0 else 1)


@pytest.mark.parametrize(("dimensions", "hosts_per_switch"), [((3, 4), 2), ((3, 3, 4), 1)])
def test_torus(dimensions: tuple[int, ...], hosts_per_switch: int) -> None:
    """networkx's periodic grid; ports to hosts come first, then two for each dimension."""
    topology = torus(dimensions, hosts_per_switch, **CABLES)
    _check(topology)
    fabric = nx.Graph(topology.graph.subgraph(topology.switch))
    assert nx.is_isomorphic(fabric, nx.grid_graph(dimensions, periodic=True))
    for own in topology.ports.values():
        for place, port in enumerate(own[hosts_per_switch:]):
            here, there = (name[1:].split("_") for name in (port.node, topology.peer[port].node))
            assert [a != b for a, b in zip(here, there, strict=True)].index(True) == place // 2


def test_free_graph_is_cabled_as_listed() -> None:
    """A ring with one doubled cable: names, roles, rates and both directions."""
    topology = RING.build()
    _check(topology)
    assert {switch.role for switch in topology.switches} == {"sw"}
    assert topology.cable[topology.port_named["sw2:sw3"]].rate_bps == 400_000_000_000
    assert topology.cable[topology.port_named["sw1:sw2#2"]].delay_ps == 50_000
    assert len(topology.next_hops["sw1"]["c"]) == 3
    assert topology.ports["b"][0].interface == "b-eth0"


@pytest.mark.parametrize("host", ["h1", "h8"])
def test_addresses_follow_from_host_numbers(host: str) -> None:
    """`hN` has 10.0.0.N, and its MAC contains that address."""
    topology = leaf_spine(2, 2, 4, **CABLES)
    number = int(host[1:])
    assert str(topology.host[host].ip) == f"10.0.0.{number}"
    assert topology.ports[host][0].mac == f"02:00:0a:00:00:{number:02x}"


def test_switch_tier_is_its_distance_from_hosts() -> None:
    """Whatever its name; in addition to the role that a topology or the name gives it."""
    topology = fat_tree(4, **FAT_TREE_CABLES)
    assert set(topology.roles.values()) == {
        ("tier1", "edge"),
        ("tier2", "aggregation"),
        ("tier3", "core"),
    }
    assert set(RING.build().roles.values()) == {("tier1", "sw")}


def test_host_without_its_cable_is_unreachable() -> None:
    """For one switch and host as for all of them."""
    whole = leaf_spine(1, 2, 2, **CABLES)
    lost = whole.cable[whole.port_named["h1:leaf1"]]
    left = Topology(
        whole.hosts, whole.switches, tuple(cable for cable in whole.cables if cable is not lost)
    )
    assert left.hops("leaf1", "h1") == left.hops("spine1", "h1") == ()
    assert all("h1" not in routes for routes in left.next_hops.values())
    assert left.leaves == {"leaf1": ["h2"], "leaf2": ["h3", "h4"]}
