"""Routes of large fabrics: found for all switches at once, and kept by leaf."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.fat_tree import fat_tree
from topologies.graph import Builder, Cable, Topology, Wire
from topologies.rail import rail

WIRE = Wire(100_000_000_000, 25_000)


@st.composite
def graphs(draw: st.DrawFn) -> Topology:
    """Any fabric, with parallel cables and parts that are apart."""
    builder = Builder()
    switches = [builder.add_switch(f"s{n}", "s") for n in range(draw(st.integers(1, 7)))]
    for _ in range(draw(st.integers(1, 6))):
        builder.add_hosts(draw(st.sampled_from(switches)), 1, WIRE)
    pairs = st.tuples(st.sampled_from(switches), st.sampled_from(switches))
    for a, b in draw(st.lists(pairs.filter(lambda pair: pair[0] != pair[1]), max_size=14)):
        builder.add_cable(a, b, WIRE)
    return builder.topology()


def without(topology: Topology, lost: set[Cable]) -> Topology:
    left = tuple(cable for cable in topology.cables if cable not in lost)
    return Topology(topology.hosts, topology.switches, left)


@given(graphs(), st.data())
def test_changed_hops_are_the_difference_of_all_routes(
    whole: Topology, data: st.DataObject
) -> None:
    """In either direction: cables are lost, or come back."""
    lost = data.draw(st.sets(st.sampled_from(whole.cables), max_size=5))
    left = without(whole, lost)
    for before, after in ((whole, left), (left, whole)):
        expected = {}
        for switch in before.switch:
            old, new = before.next_hops[switch], after.next_hops[switch]
            changes = {
                host: new.get(host, ())
                for host in before.host
                if old.get(host, ()) != new.get(host, ())
            }
            if changes:
                expected[switch] = changes
        assert dict(before.changed_hops(after)) == expected


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (
            fat_tree(8, host_wire=WIRE, edge_wire=WIRE, core_wire=WIRE),
            fat_tree(16, host_wire=WIRE, edge_wire=WIRE, core_wire=WIRE),
        ),
        (
            rail(32, 4, 4, host_wire=WIRE, fabric_wire=WIRE),
            rail(256, 4, 4, host_wire=WIRE, fabric_wire=WIRE),
        ),
    ],
    ids=["fat-tree", "rail"],
)
def test_lists_of_next_hops_grow_like_ports(small: Topology, large: Topology) -> None:
    """Eight times the hosts: the lists of all switches, which are what routes are made of, grow
    like the ports of the fabric, not like switches times hosts."""
    for topology in (small, large):
        lists = sum(len(topology.next_hops_of(switch).lists) - 1 for switch in topology.switch)
        assert lists <= len(topology.switch_ports)
