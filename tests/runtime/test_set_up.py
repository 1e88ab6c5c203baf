"""The work of setting up a fabric, counted in calls, which do not depend on the machine's load."""

from __future__ import annotations

import cProfile

import pytest

from emu.runtime.virtual import VirtualFabric
from tests.support.small_fabrics import shortest_paths, spec_of


def test_set_up_work_grows_linearly_with_hosts() -> None:
    """Each host has a flow to another: 120 more hosts take twice as many calls as 60 more."""
    _calls_of_set_up(2)  # fills caches first
    few, more, many = (_calls_of_set_up(hosts_per_leaf) for hosts_per_leaf in (30, 60, 120))
    assert (many - more) / (more - few) == pytest.approx(2, rel=0.05)


def _calls_of_set_up(hosts_per_leaf: int) -> int:
    spec = spec_of(
        f"""
        fabric: ib
        topology: {{kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: {hosts_per_leaf}}}
        traffic: [{{name: load, pattern: permutation, among: all, size: 4KB}}]
        """
    )
    topology, graph = spec.topology.build(), spec.workload()
    subnet = shortest_paths(topology)
    with cProfile.Profile() as profile, VirtualFabric(spec, topology, subnet, graph):
        profile.create_stats()
    return sum(entry.callcount for entry in profile.getstats())
