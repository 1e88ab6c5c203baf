"""Larger sizes of a cluster: which there are, and by which model."""

from __future__ import annotations

from typing import Any

import pytest

import emu
from emu.decisions.candidates import candidates_of, host_rate_bps
from emu.decisions.growth import Size, sizes_of

ALL = {"name": "sum", "pattern": "all-reduce", "algorithm": "ring", "among": "all", "size": "64KB"}
LEAF_SPINE = {"kind": "leaf-spine", "spines": 2, "leaves": 2, "hosts_per_leaf": 2}


def sizes(
    topology: dict[str, Any],
    traffic: dict[str, Any] = ALL,
    grow: dict[str, Any] | None = None,
    longest_seconds: float = 60.0,
    **keys: Any,
) -> tuple[list[Size], list[str]]:
    spec = emu.Spec(topology=topology, traffic=[traffic], payload="elided", **keys)
    candidates, _ = candidates_of(spec, ["ib", "roce-lossy"], [host_rate_bps(spec)])
    found, refused = sizes_of(candidates, grow or {}, longest_seconds)
    return found, [own.reason for own in refused]


@pytest.mark.parametrize(
    ("topology", "hosts"),
    [
        (LEAF_SPINE, [8, 16]),
        ({"kind": "rail", "servers": 2, "rails": 4, "spines": 2}, [16, 32]),
        ({"kind": "fat-tree", "k": 4}, [54, 128]),
    ],
    ids=["leaf-spine", "rail", "fat-tree"],
)
def test_usual_sizes_have_two_and_four_times_the_hosts(
    topology: dict[str, Any], hosts: list[int]
) -> None:
    """A fat tree has the least k with so many."""
    found, refused = sizes(topology)
    assert [size.hosts for size in found] == hosts
    assert {size.model for size in found} == {"packets"}
    assert refused == []


def test_sizes_of_the_user_are_taken_one_by_one() -> None:
    found, _ = sizes(LEAF_SPINE, grow={"topology.leaves": [3, 4], "topology.spines": [2, 4]})
    assert [dict(size.settings) for size in found] == [
        {"topology.leaves": 3, "topology.spines": 2},
        {"topology.leaves": 4, "topology.spines": 4},
    ]


def test_what_takes_too_long_by_packets_is_done_by_the_flow_model() -> None:
    """And so is the spec's own size, to show how far that is off."""
    found, refused = sizes(LEAF_SPINE, longest_seconds=0.0)
    assert [(size.hosts, size.model) for size in found] == [(4, "flow"), (8, "flow"), (16, "flow")]
    assert refused == []


def test_traffic_among_named_hosts_does_not_grow() -> None:
    pair = {"name": "pair", "pattern": "pair", "from": "h1", "to": "h3", "size": "1MB"}
    found, refused = sizes(LEAF_SPINE, pair)
    assert found == []
    assert all("no more hosts have traffic" in reason for reason in refused)


def test_a_size_that_cannot_be_has_a_reason() -> None:
    found, refused = sizes(LEAF_SPINE, grow={"topology.leaves": [4, 9999]})
    assert [size.hosts for size in found] == [8]
    assert "9999" in refused[0]


def test_the_flow_model_refuses_faults() -> None:
    delay = [{"delay": {"cable": "leaf1:h1", "by": "1us"}}]
    found, refused = sizes(LEAF_SPINE, longest_seconds=0.0, faults=delay)
    assert found == []
    assert "by packets a run takes about" in refused[0]
    assert "the flow model has none" in refused[0]


def test_other_topologies_need_keys() -> None:
    found, refused = sizes({"kind": "ring", "switches": 4, "hosts_per_switch": 1})
    assert found == []
    assert "--grow" in refused[0]
