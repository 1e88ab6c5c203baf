"""What holds for every topology: ports, names, addresses, and shortest paths."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.spec.model import Graph
from topologies.dumbbell import dumbbell
from topologies.graph import Topology
from topologies.leaf_spine import leaf_spine

CABLES = {
    "host_rate_bps": 25_000_000_000,
    "host_delay_ps": 25_000,
    "fabric_rate_bps": 100_000_000_000,
    "fabric_delay_ps": 500_000,
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
    """Every invariant at once."""
    _ports_are_plugged_once(topology)
    _addresses_are_unique(topology)
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


def _next_hops_are_the_shortest_paths(topology: Topology) -> None:
    """Against networkx: the set of first steps of all shortest paths through switches."""
    graph = nx.Graph(topology.graph)
    for switch in topology.switches:
        for host in topology.hosts:
            through = graph.subgraph({s.name for s in topology.switches} | {host.name})
            paths = nx.all_shortest_paths(through, switch.name, host.name)
            hops = topology.next_hops[switch.name][host.name]
            assert {topology.peer[port].node for port in hops} == {path[1] for path in paths}
            assert list(hops) == sorted(hops, key=lambda port: port.number)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_leaf_spine(spines: int, leaves: int, hosts_per_leaf: int) -> None:
    """Every leaf to every spine; hosts counted leaf by leaf; as many paths as spines."""
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


def test_a_free_graph_is_cabled_as_listed() -> None:
    """A ring with one cable doubled: names, roles, rates and both ways around."""
    topology = RING.build()
    _check(topology)
    assert {switch.role for switch in topology.switches} == {"sw"}
    assert topology.cable[topology.port_named["sw2:sw3"]].rate_bps == 400_000_000_000
    assert topology.cable[topology.port_named["sw1:sw2#2"]].delay_ps == 50_000
    assert len(topology.next_hops["sw1"]["c"]) == 3
    assert topology.ports["b"][0].interface == "b-eth0"


@pytest.mark.parametrize("host", ["h1", "h8"])
def test_addresses_can_be_worked_out(host: str) -> None:
    """`hN` has 10.0.0.N, and its MAC is that address."""
    topology = leaf_spine(2, 2, 4, **CABLES)
    number = int(host[1:])
    assert str(topology.host[host].ip) == f"10.0.0.{number}"
    assert topology.ports[host][0].mac == f"02:00:0a:00:00:{number:02x}"
