"""Hosts named by their place in the fabric, and numbers computed from the number of hosts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.spec.checks.counter import Counter
from emu.spec.checks.fairness import Fairness
from emu.spec.checks.rate import DeliveryRate
from emu.spec.formula import expected_numbers, worked_out
from emu.spec.groups import expanded
from emu.spec.model import spec_from_json, spec_from_text
from topologies.graph import Wire
from topologies.leaf_spine import leaf_spine

LINKS = dict.fromkeys(("host_wire", "fabric_wire"), Wire(10**11, 0))
SPEC = """
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: COUNT}
traffic: [{name: all, pattern: incast, from: [h2, leaf2], to: "leaf1[0]", size: 1MB}]
verify:
  - {fairness: {traffic: all, is: 4*(n-1)/n**2}}
  - {counter: {name: tx_packets, at: leaf2, at_least: "max(100*n, 1000)"}}
  - {rate: {traffic: all, at_most: 120/n Gbit}}
"""
SUBNET = b"""
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 2}
fabric: ib
subnet:
  managers: "leaf2[1]"
  partitions: {blue: {pkey: 5, full: leaf1, limited: "leaf2[:1]"}, red: {pkey: 6, full: all}}
"""


@pytest.mark.parametrize(
    ("words", "hosts"),
    [
        (("all",), "h1 h2 h3 h4 h5 h6"),
        (("leaf2",), "h4 h5 h6"),
        (("leaf2[0]",), "h4"),
        (("leaf2[-1]",), "h6"),
        (("leaf2[1:]",), "h5 h6"),
        (("all[1:3]",), "h2 h3"),
        (("all[:-4]",), "h1 h2"),
        (("h5", "leaf2"), "h5 h4 h6"),
    ],
)
def test_a_group_is_the_hosts_at_that_place(words: tuple[str, ...], hosts: str) -> None:
    """Indices and slices count as in Python, and each host appears once."""
    assert expanded(words, leaf_spine(1, 2, 3, **LINKS)) == tuple(hosts.split())


@pytest.mark.parametrize("word", ["leaf3", "leaf2[3:]", "leaf2[9]", "spine1", "leaf2[1", "h7"])
def test_an_empty_group_stays_as_written(word: str) -> None:
    """A rule reports the word later."""
    assert expanded((word,), leaf_spine(1, 2, 3, **LINKS)) == (word,)


@pytest.mark.parametrize("count", [2, 3, 6])
def test_traffic_and_checks_follow_the_number_of_hosts(count: int) -> None:
    """One of the n flows has a port to itself and gets half of the link."""
    spec = spec_from_text(SPEC.replace("COUNT", str(count)).encode(), source="x.emu.yml")
    fairness, counter, rate = (check.what for check in spec.verify)
    assert isinstance(fairness, Fairness)
    assert isinstance(counter, Counter)
    assert isinstance(rate, DeliveryRate)
    shares = [1 / 2] + [1 / (2 * count)] * count
    assert spec.traffic[0].flow_count == count + 1
    assert fairness.is_ == pytest.approx(1 / (len(shares) * sum(x * x for x in shares)))
    assert counter.at_least == max(100 * (count + 1), 1000)
    assert rate.at_most == pytest.approx(120e9 / (count + 1))
    assert spec_from_json(spec.to_json()) == spec
    assert spec.to_mapping()["traffic"][0]["from"] == ["h2", "leaf2"]


@pytest.mark.parametrize("hot", ["leaf2[0]", "all[3]", "h4"])
def test_a_hot_spot_may_be_named_by_place(hot: str) -> None:
    """All other hosts send to the hot spot, and the hot spot sends nothing."""
    spec = spec_from_text(
        f"""
        topology: {{kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 3}}
        traffic: [{{name: a, pattern: hot-spot, among: all, hot: "{hot}", share: 1, size: 1MB}}]
        """.encode(),
        source="x.emu.yml",
    )
    assert spec.traffic[0].pairs(1) == [(f"h{n}", "h4") for n in (1, 2, 3, 5, 6)]
    assert spec_from_json(spec.to_json()) == spec


def test_groups_follow_a_setting_of_the_host_count() -> None:
    """The incast grows with one `--set`."""
    text = SPEC.replace("COUNT", "3").encode()
    spec = spec_from_text(text, source="x.emu.yml", settings=["topology.hosts_per_leaf=8"])
    assert spec.traffic[0].senders == ("h2", *(f"h{n}" for n in range(9, 17)))


@given(st.integers(1, 1000), st.integers(1, 50), st.integers(1, 50))
def test_a_formula_has_the_value_that_python_computes(n: int, a: int, b: int) -> None:
    """Formulas hold numbers, n, the four operations, powers, min and max."""
    assert worked_out(f"min({a} * n, n**2) - n / {b}", n) == min(a * n, float(n) ** 2) - n / b


@pytest.mark.parametrize(
    "text", ["", "n + x", "1/6", "10ns", "n(", "n / 0", "n**n**n**n", "(0-n)**.5", "nn", "n.min"]
)
def test_text_that_is_no_formula_is_unchanged(text: str) -> None:
    """The cases hold unknown names and calls, invalid numbers and long computations."""
    checks = [{"counter": {"name": "tx_packets", "is": text}}]
    assert expected_numbers(checks, {"all": 9}) == checks


def test_groups_name_subnet_managers_and_members_of_partitions() -> None:
    spec = spec_from_text(SUBNET, source="")
    subnet = spec.subnet
    assert spec_from_json(spec.to_json()).subnet == subnet
    assert subnet.managers == ("h4",)
    assert subnet.partitions["blue"].full == ("h1", "h2")
    assert subnet.partitions["blue"].limited == ("h3",)
    assert subnet.partitions["red"].members == ("h1", "h2", "h3", "h4")
