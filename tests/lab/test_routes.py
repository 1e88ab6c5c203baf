"""Routes as OpenFlow, without a switch to load them."""

from __future__ import annotations

from collections.abc import Callable

from emu.lab.routes import Group, Hop, route_tables
from tests.lab.fabrics import clos_of


def test_every_switch_has_one_flow_per_host_and_drops_the_rest(
    golden: Callable[[str, str], None],
) -> None:
    """The bundles of a small Clos, line by line."""
    bundles = [
        f"# {table.switch}\n" + "\n".join(table.lines()) for table in route_tables(clos_of(1))
    ]
    golden("routes.txt", "\n".join(bundles) + "\n")


def test_hosts_behind_the_same_next_hops_share_a_group() -> None:
    """A leaf needs one group for everything that is up, however many hosts there are."""
    leaf1 = route_tables(clos_of(4))[2]
    up = (Hop(5, "02:01:00:01:00:01"), Hop(6, "02:01:00:02:00:01"))
    assert leaf1.groups == (Group(1, leaf1.groups[0].seed, up),)
    assert [route.via for route in leaf1.routes[4:]] == [leaf1.groups[0]] * 4


def test_every_switch_hashes_with_a_seed_of_its_own() -> None:
    """Or the second tier would leave the ports idle that the first has not chosen."""
    seeds = [group.seed for table in route_tables(clos_of(2)) for group in table.groups]
    assert len(seeds) == len(set(seeds)) == 2


def test_what_the_shim_chooses_is_matched_in_the_tag(
    golden: Callable[[str, str], None],
) -> None:
    """Every next hop of every host that has several; without a hint the group decides."""
    leaf1 = route_tables(clos_of(2, routing={"kind": "spray"}))[2]
    golden("routes-spray.txt", "\n".join(leaf1.lines()) + "\n")


def test_no_route_touches_or_hashes_the_source_mac() -> None:
    """The shim's transit tag is in the source MAC."""
    lines = [line for table in route_tables(clos_of(2)) for line in table.lines()]
    assert not [line for line in lines if "eth_src" in line or "dl_src" in line]
