"""Channels: rings and trees that use every NIC of a server and never change rails."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from traffic.collectives.channels import by_number, in_a_row, nics_of, parents_of, ring_of
from traffic.collectives.schedule import NOBODY
from traffic.collectives.tree import parents_of as tree_of


def hops(ring: list[int], gpus: int) -> list[tuple[int, int]]:
    """The ring's steps from one server to another."""
    steps = zip(ring, [*ring[1:], ring[0]], strict=True)
    return [(src, dst) for src, dst in steps if src // gpus != dst // gpus]


@settings(max_examples=50)
@given(servers=st.integers(2, 9), gpus=st.integers(1, 8), channel=st.integers(0, 20))
def test_ring_visits_each_server_once(servers: int, gpus: int, channel: int) -> None:
    ring = ring_of(in_a_row(servers * gpus, gpus), channel).tolist()
    assert sorted(ring) == list(range(servers * gpus))
    assert len(hops(ring, gpus)) == servers


@settings(max_examples=50)
@given(servers=st.integers(2, 9), gpus=st.integers(2, 8))
def test_rings_use_all_nics_and_stay_on_their_rails(servers: int, gpus: int) -> None:
    """Each NIC sends on one channel and receives on one; an odd number of servers needs more than
    two NICs."""
    sends: Counter[int] = Counter()
    receives: Counter[int] = Counter()
    changes = 0
    for channel in range(gpus):
        between = hops(ring_of(in_a_row(servers * gpus, gpus), channel).tolist(), gpus)
        sends.update(src for src, _ in between)
        receives.update(dst for _, dst in between)
        changes += sum(src % gpus != dst % gpus for src, dst in between)
    assert set(sends.values()) == set(receives.values()) == {1}
    assert len(sends) == len(receives) == servers * gpus
    assert (changes > 0) == (gpus == 2 and servers % 2 == 1)


@settings(max_examples=50)
@given(servers=st.integers(1, 9), gpus=st.integers(1, 8), channel=st.integers(0, 20))
def test_one_gpu_per_server_talks_to_other_servers(servers: int, gpus: int, channel: int) -> None:
    """GPU number `channel`; the others form a chain behind it."""
    parents = parents_of(in_a_row(servers * gpus, gpus), channel, tree_of(servers))
    assert np.count_nonzero(parents == NOBODY) == 1
    for rank, parent in enumerate(parents.tolist()):
        if parent == NOBODY or parent // gpus != rank // gpus:
            assert rank % gpus == channel % gpus
        if parent != NOBODY and parent // gpus != rank // gpus:
            assert parent % gpus == channel % gpus


@given(numbers=st.lists(st.integers(0, 3), min_size=1, max_size=12), channel=st.integers(0, 9))
def test_servers_of_any_size_have_a_ring(numbers: list[int], channel: int) -> None:
    """Ranks of a server can have any numbers, and servers can differ in size."""
    servers = by_number(numbers)
    ring = ring_of(servers, channel).tolist()
    assert sorted(ring) == list(range(len(numbers)))
    visited = [numbers[rank] for rank in ring]
    changes = sum(a != b for a, b in pairwise(visited))
    assert changes == len(servers) - 1


def test_hosts_without_servers_use_one_plain_ring() -> None:
    alone = in_a_row(5, 1)
    assert ring_of(alone, 3).tolist() == [0, 1, 2, 3, 4]
    assert nics_of(alone) == 1
    assert nics_of(in_a_row(8, 8)) == 1, "one server: no NIC is used"
    assert nics_of(in_a_row(16, 8)) == 8
