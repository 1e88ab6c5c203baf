"""Routes as OpenFlow rules, without a switch to load them."""

from __future__ import annotations

from collections.abc import Callable

from emu.lab.routes import (
    Group,
    GroupIds,
    Hop,
    RouteTable,
    change_lines,
    route_table,
    route_tables,
)
from emu.spec.outages import degraded
from emu.spec.scenario import Spec
from tests.support.lab_fabrics import clos_of


def test_switches_have_a_flow_per_host_and_drop_the_rest(
    golden: Callable[[str, str], None],
) -> None:
    """The golden file has the bundles of a small Clos."""
    bundles = [
        f"# {table.switch}\n" + "\n".join(table.lines()) for table in route_tables(clos_of(1))
    ]
    golden("routes.txt", "\n".join(bundles) + "\n")


def test_hosts_behind_the_same_next_hops_share_a_group() -> None:
    """A leaf needs one group for all hosts behind its uplinks."""
    leaf1 = route_tables(clos_of(4))[2]
    up = (Hop(5, "02:01:00:01:00:01"), Hop(6, "02:01:00:02:00:01"))
    assert leaf1.groups == (Group(1, leaf1.groups[0].seed, up),)
    assert [route.via for route in leaf1.routes[4:]] == [leaf1.groups[0]] * 4


def test_every_switch_hashes_with_its_own_seed() -> None:
    """With equal seeds the second tier would leave some ports idle."""
    seeds = [group.seed for table in route_tables(clos_of(2)) for group in table.groups]
    assert len(seeds) == len(set(seeds)) == 2


def test_routes_follow_the_port_in_the_transit_tag(
    golden: Callable[[str, str], None],
) -> None:
    """Each port has a flow. Without a port in the tag, the group decides."""
    leaf1 = route_tables(clos_of(2, routing={"kind": "spray"}))[2]
    golden("routes-spray.txt", "\n".join(leaf1.lines()) + "\n")


def test_routes_ignore_the_source_mac() -> None:
    """The source MAC holds the shim's transit tag."""
    lines = [line for table in route_tables(clos_of(2)) for line in table.lines()]
    assert not [line for line in lines if "eth_src" in line or "dl_src" in line]


def leaf1_without(spec: Spec, cable: str, ids: GroupIds) -> RouteTable:
    """leaf1's table after the loss of a cable, or its first table if `cable` is empty."""
    topology = spec.topology.build()
    down = frozenset({topology.cable[topology.port_named[cable]]} if cable else ())
    return route_table(spec, "leaf1", degraded(topology, down).next_hops["leaf1"], ids, hinted=True)


def test_a_lost_link_leaves_no_bucket_behind() -> None:
    """Two hosts are reached by the remaining spine, and the unused group is deleted."""
    ids: GroupIds = {}
    spec = clos_of(2)
    whole, left = (leaf1_without(spec, cable, ids) for cable in ("", "leaf1:spine1"))
    assert list(change_lines(whole, left)) == [
        "flow add priority=100,ip,nw_dst=10.0.0.3/32,actions=dec_ttl,"
        "set_field:02:01:00:02:00:01->eth_dst,load:0->NXM_OF_IN_PORT[],output:4",
        "flow add priority=100,ip,nw_dst=10.0.0.4/32,actions=dec_ttl,"
        "set_field:02:01:00:02:00:01->eth_dst,load:0->NXM_OF_IN_PORT[],output:4",
        "group delete group_id=1",
    ]


def test_a_recovered_link_restores_the_table() -> None:
    """Groups have the same numbers, and so the same hashes, as before."""
    ids: GroupIds = {}
    spec = clos_of(2)
    whole, left = (leaf1_without(spec, cable, ids) for cable in ("", "leaf1:spine1"))
    again = leaf1_without(spec, "", ids)
    assert again == whole
    back = list(change_lines(left, again))
    assert back[0] == whole.groups[0].line()
    assert back[1:] == [route.line() for route in whole.routes if route.via in whole.groups]


def test_an_isolated_host_has_no_route() -> None:
    """The first switch drops its packets."""
    ids: GroupIds = {}
    whole, left = (leaf1_without(clos_of(2), cable, ids) for cable in ("", "leaf2:h3"))
    gone = "flow delete_strict priority=100,ip,nw_dst=10.0.0.3/32"
    assert list(change_lines(whole, left)) == [gone]


def test_a_pinned_flow_leaves_a_lost_path() -> None:
    """The flow's own rule is deleted, so the route to the host applies."""
    ids: GroupIds = {}
    clos = clos_of(2, routing={"kind": "pinned", "paths": {"flow": "spine1"}}).to_mapping()
    flow = {"name": "flow", "pattern": "pair", "from": "h1", "to": "h3", "size": "1MB"}
    spec = Spec.model_validate(clos | {"traffic": [flow]})
    whole, left = (leaf1_without(spec, cable, ids) for cable in ("", "leaf1:spine1"))
    lines = list(change_lines(whole, left))
    assert "flow delete_strict priority=200,udp,nw_src=10.0.0.1,nw_dst=10.0.0.3" in lines[2]
