"""The autonomous systems of a fabric's switches, after RFC 7938, 5.2.2."""

from __future__ import annotations

from emu.bgp.numbering import autonomous_systems, loopback
from emu.spec.model import spec_from_text


def numbers_of(topology: str) -> dict[str, int]:
    return autonomous_systems(
        spec_from_text(f"topology: {topology}".encode(), source="spec").topology.build()
    )


def test_spines_share_a_number_and_leaves_do_not() -> None:
    assert numbers_of("{kind: leaf-spine, spines: 2, leaves: 3, hosts_per_leaf: 1}") == {
        "spine1": 4200100001,
        "spine2": 4200100001,
        "leaf1": 4200000001,
        "leaf2": 4200000002,
        "leaf3": 4200000003,
    }


def test_middle_tier_of_a_pod_shares_a_number() -> None:
    numbers = numbers_of("{kind: fat-tree, k: 4}")
    pods = [{numbers["agg1"], numbers["agg2"]}, {numbers["agg3"], numbers["agg4"]}]
    assert all(len(pod) == 1 for pod in pods)
    assert pods[0] != pods[1]
    assert len({numbers[f"core{number}"] for number in range(1, 5)}) == 1
    assert len({numbers[f"edge{number}"] for number in range(1, 9)}) == 8
    assert len(set(numbers.values())) == 8 + 4 + 1


def test_neighbours_of_one_tier_have_numbers_of_their_own() -> None:
    """Otherwise they would refuse each other's routes."""
    numbers = numbers_of("{kind: ring, switches: 4, hosts_per_switch: 1}")
    assert len(set(numbers.values())) == 4


def test_switches_have_loopbacks() -> None:
    topology = spec_from_text(
        b"topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 1}", source="spec"
    ).topology.build()
    addresses = [str(loopback(topology, switch)) for switch in topology.switch]
    assert addresses == ["10.255.0.1", "10.255.0.2", "10.255.0.3"]
