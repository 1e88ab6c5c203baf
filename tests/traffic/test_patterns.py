"""Patterns of traffic: senders, receivers, sizes and order."""

from __future__ import annotations

from collections import Counter
from random import Random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic.graph import OperationGraph, together
from traffic.patterns import Messages, all_to_all, incast, outcast, pair, permutation, permuted
from traffic.verb import Verb

HOSTS = [f"h{n}" for n in range(1, 9)]


def test_incast_sends_from_all_to_one() -> None:
    """Seven senders, one flow each, named after its two ends."""
    graph = incast("incast", HOSTS[1:], "h1", Messages(Verb.WRITE, 1_000_000))
    assert [flow.name for flow in graph.flows] == [f"incast.{host}-h1" for host in HOSTS[1:]]
    assert {flow.traffic for flow in graph.flows} == {"incast"}
    assert all(graph.bytes_between(host, "h1") == 1_000_000 for host in HOSTS[1:])
    assert sum(o.size_bytes for o in graph.operations) == 7_000_000
    assert all(o.after == () for o in graph.operations)


def test_outcast_sends_from_one_to_all() -> None:
    """One sender, one flow to each receiver, all at the same time."""
    graph = outcast("o", "h1", HOSTS[1:], Messages(Verb.WRITE, 5))
    assert [(flow.src, flow.dst) for flow in graph.flows] == [("h1", host) for host in HOSTS[1:]]
    assert all(o.after == () for o in graph.operations)


def test_bursts_begin_one_period_apart() -> None:
    """Five messages in bursts of two: two at the start, two a period later, one after that."""
    messages = Messages(Verb.WRITE, 5, count=5, outstanding=5, start_ns=10, burst=2, period_ns=100)
    graph = incast("i", ["h2", "h3"], "h1", messages)
    assert graph.not_before_ns.tolist() == [10, 10, 110, 110, 210] * 2


def test_single_flow_has_the_name_of_its_entry() -> None:
    """`victim`, not `victim.h5-h3`."""
    graph = pair("victim", ["h5"], ["h3"], Messages(Verb.SEND, 10))
    assert [(flow.name, flow.src, flow.dst) for flow in graph.flows] == [("victim", "h5", "h3")]
    assert {operation.flow for operation in graph.operations} == {"victim"}


def test_pairs_are_made_in_order() -> None:
    """First with first, second with second."""
    graph = pair("p", ["h1", "h2"], ["h4", "h3"], Messages(Verb.WRITE, 5))
    assert [(flow.src, flow.dst) for flow in graph.flows] == [("h1", "h4"), ("h2", "h3")]


def test_uneven_pairs_are_refused() -> None:
    """No host is left out silently."""
    with pytest.raises(ValueError, match="shorter"):
        pair("p", ["h1", "h2"], ["h3"], Messages(Verb.WRITE, 5))


def test_messages_of_a_flow_follow_each_other() -> None:
    """Each starts after the previous one of its flow, and after no other."""
    messages = Messages(Verb.SEND, 100, count=3, start_ns=700, priority=4)
    graph = incast("i", ["h2", "h3"], "h1", messages)
    assert [o.after for o in graph.operations] == [(), (0,), (1,), (), (3,), (4,)]
    assert [flow.operations for flow in graph.flows] == [range(3), range(3, 6)]
    assert {(o.verb, o.not_before_ns, o.priority) for o in graph.operations} == {
        (Verb.SEND, 700, 4)
    }


@given(hosts=st.integers(2, 40), seed=st.integers())
def test_permutation_has_no_fixed_point(hosts: int, seed: int) -> None:
    """Every host sends once and receives once, and not to itself; the seed selects the
    permutation."""
    names = [f"h{n}" for n in range(hosts)]
    graph = permutation("p", names, Messages(Verb.WRITE, 7), Random(seed))
    assert [flow.src for flow in graph.flows] == names
    assert sorted(flow.dst for flow in graph.flows) == sorted(names)
    assert all(flow.src != flow.dst for flow in graph.flows)
    assert graph == permutation("p", names, Messages(Verb.WRITE, 7), Random(seed))


def test_every_permutation_is_equally_likely() -> None:
    """Of three hosts two permutations move all, of four nine; a bias would show clearly."""
    random = Random(1)
    for hosts, possible in (("abc", 2), ("abcd", 9)):
        drawn = Counter(tuple(permuted(hosts, random)) for _ in range(900 * possible))
        assert len(drawn) == possible
        assert all(800 < times < 1000 for times in drawn.values())


def test_single_host_cannot_be_permuted() -> None:
    """It could only send to itself."""
    with pytest.raises(ValueError, match=r"^h1 has no other host to send to$"):
        permuted(["h1"], Random(1))


@given(hosts=st.integers(2, 12), count=st.integers(1, 3))
def test_all_to_all_is_every_ordered_pair_once(hosts: int, count: int) -> None:
    """n(n - 1) flows; no two hosts begin with the same receiver."""
    names = [f"h{n}" for n in range(hosts)]
    graph = all_to_all("a", names, Messages(Verb.SEND, 7, count=count))
    pairs = [(flow.src, flow.dst) for flow in graph.flows]
    assert sorted(pairs) == sorted((a, b) for a in names for b in names if a != b)
    assert graph.total_bytes == hosts * (hosts - 1) * count * 7
    assert len({dst for _, dst in pairs[:: hosts - 1]}) == hosts


@given(
    senders=st.integers(1, 7),
    count=st.integers(1, 5),
    size=st.integers(1, 10**9),
    others=st.integers(0, 3),
)
def test_joined_entries_keep_bytes_and_order(
    senders: int, count: int, size: int, others: int
) -> None:
    """Every flow still has its bytes and its own chain of messages."""
    messages = Messages(Verb.WRITE, size, count=count)
    one = incast("one", HOSTS[1 : senders + 1], "h1", messages)
    more = [pair(f"p{n}", ["h1"], ["h8"], messages) for n in range(others)]
    graph: OperationGraph = together([*more, one])
    assert graph.bytes_between("h2", "h1") == size * count
    assert graph.bytes_between("h1", "h8") == size * count * others
    assert [operation.id for operation in graph.operations] == list(range(len(graph.operations)))
    chains = [sorted(part) for part in nx.weakly_connected_components(graph.dependencies())]
    assert sorted(chains) == sorted(list(flow.operations) for flow in graph.flows)


def test_outstanding_limits_the_messages_in_flight() -> None:
    """Each message waits for the one that many before; the first ones wait for nothing, and no flow
    waits for another."""
    messages = Messages(verb=Verb.WRITE, size_bytes=1, count=5, outstanding=2)
    graph = incast("in", ["h2", "h3"], "h1", messages)
    waits = dict(zip(graph.later.tolist(), graph.earlier.tolist(), strict=True))
    assert waits == {2: 0, 3: 1, 4: 2, 7: 5, 8: 6, 9: 7}
