"""Collectives as graphs: correct results, closed forms, and no dependency cycle."""

from __future__ import annotations

from math import ceil, log2

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.play_graph import played, random_values
from traffic.collectives.channels import in_a_row
from traffic.collectives.collective import ALGORITHMS, Cut, amount_of, collective
from traffic.collectives.exchange import all_to_all
from traffic.collectives.schedule import Schedule
from traffic.collectives.tree import parents_of, second_tree
from traffic.graph import OperationGraph
from traffic.job import Job, Kind, first_values, pieces_of, results
from traffic.verb import Verb

EVERY = [(kind, algorithm) for kind, names in ALGORITHMS.items() for algorithm in names]
CUTS = st.builds(Cut, st.sampled_from([None, 4, 60, 1000]), st.integers(1, 3))


def job(kind: Kind, algorithm: str, ranks: int, size_bytes: int, root: int = 0) -> Job:
    names = tuple(f"h{n}" for n in range(1, ranks + 1))
    return Job("sum", kind, algorithm, names, size_bytes, root)


def all_reduce(algorithm: str, ranks: int, size_bytes: int, gpus: int = 1) -> OperationGraph:
    return collective(
        job(Kind.ALL_REDUCE, algorithm, ranks, size_bytes), servers=in_a_row(ranks, gpus)
    )


def steps(graph: OperationGraph) -> int:
    """Number of messages on the longest chain."""
    return int(nx.dag_longest_path_length(graph.dependencies())) + 1


@pytest.mark.parametrize(("kind", "algorithm"), EVERY)
@settings(max_examples=10)
@given(ranks=st.integers(2, 9), floats=st.integers(9, 50), cut=CUTS, gpus=st.integers(1, 3))
def test_all_ranks_have_the_results_of_numpy(
    kind: Kind, algorithm: str, ranks: int, floats: int, cut: Cut, gpus: int
) -> None:
    """A message carries the content of the buffers at its earliest start."""
    ranks *= gpus if algorithm == "hierarchical" else 1
    own = job(kind, algorithm, ranks, 4 * max(floats, ranks), root=ranks // 2)
    first = random_values(own, seed=ranks)
    ended = list(
        played(collective(own, cut=cut, servers=in_a_row(ranks, gpus)), own, first).values()
    )
    at, sizes = (column // 4 for column in pieces_of(0, own.size_bytes, ranks))
    ends = at + sizes
    for rank, buffer in enumerate(ended):
        piece = slice(at[rank], ends[rank])
        if kind is Kind.ALL_REDUCE:
            assert np.array_equal(buffer, np.sum(first, axis=0))
        elif kind is Kind.REDUCE_SCATTER:
            assert np.array_equal(buffer[piece], np.sum(first, axis=0)[piece])
        elif kind is Kind.BROADCAST:
            assert np.array_equal(buffer, first[ranks // 2])
        elif kind is Kind.ALL_GATHER:
            gathered = [first[r][at[r] : ends[r]] for r in range(ranks)]
            assert np.array_equal(buffer, np.concatenate(gathered))
        else:
            room = buffer[own.size_bytes // 4 :][: ranks * sizes[rank]].reshape(ranks, -1)
            others = [r for r in range(ranks) if r != rank]
            assert np.array_equal(room[others], [first[r][piece] for r in others])


@pytest.mark.parametrize(("kind", "algorithm"), EVERY)
@settings(max_examples=10)
@given(ranks=st.integers(2, 8), floats=st.integers(9, 50), gpus=st.integers(1, 3))
def test_wrong_values_are_detected(
    kind: Kind, algorithm: str, ranks: int, floats: int, gpus: int
) -> None:
    """The buffers after a played graph are correct by the job's own results; one more bit is
    not."""
    ranks *= gpus if algorithm == "hierarchical" else 1
    own = job(kind, algorithm, ranks, 4 * max(floats, ranks))
    first = first_values(own, np.random.default_rng(floats))
    ended = played(collective(own, servers=in_a_row(ranks, gpus)), own, first)
    for buffer, expected in zip(ended.values(), results(own, first), strict=True):
        for result in expected:
            there = buffer[result.at // 4 :][: len(result.values)]
            assert np.array_equal(there, result.values)
            assert not np.array_equal(there + 1, result.values)


@pytest.mark.parametrize(("kind", "algorithm"), EVERY)
@settings(max_examples=10)
@given(ranks=st.integers(2, 9), floats=st.integers(30, 99), cut=CUTS, gpus=st.integers(1, 3))
def test_totals_are_known_before_expansion(
    kind: Kind, algorithm: str, ranks: int, floats: int, cut: Cut, gpus: int
) -> None:
    """Flows, messages, bytes: (n - 1) S in all, twice that for an all-reduce; and no cycle."""
    ranks *= gpus if algorithm == "hierarchical" else 1
    own = job(kind, algorithm, ranks, 4 * max(floats, ranks))
    servers = in_a_row(ranks, gpus)
    graph, amount = collective(own, cut=cut, servers=servers), amount_of(own, cut, servers)
    twice = 2 if kind is Kind.ALL_REDUCE else 1
    assert amount.flows == len(graph.flows)
    assert amount.messages == len(graph.operations)
    assert amount.bytes == graph.total_bytes == twice * (ranks - 1) * own.size_bytes
    assert nx.is_directed_acyclic_graph(graph.dependencies())
    assert len({flow.name for flow in graph.flows}) == len(graph.flows)


@settings(max_examples=25)
@given(ranks=st.integers(2, 12), piece=st.integers(1, 10**6))
def test_ring_all_reduce_sends_the_closed_form(ranks: int, piece: int) -> None:
    """2(n - 1) steps and 2(n - 1)/n * S bytes for each rank, all to its right neighbour."""
    graph = all_reduce("ring", ranks, size := 4 * piece * ranks)
    names = [f"h{n}" for n in range(1, ranks + 1)]
    pairs = list(zip(names, [*names[1:], names[0]], strict=True))
    assert [(flow.src, flow.dst) for flow in graph.flows] == pairs
    assert {graph.bytes_of(flow) * ranks for flow in graph.flows} == {2 * (ranks - 1) * size}
    assert set(graph.size_bytes.tolist()) == {4 * piece}
    assert steps(graph) == 2 * (ranks - 1)


@settings(max_examples=25)
@given(order=st.integers(2, 8).flatmap(lambda ranks: st.permutations(range(ranks))))
def test_all_to_all_posts_for_the_next_neighbour_first(order: list[int]) -> None:
    """Then for the one after it, in the order of the ranks. Of operations that can start together,
    the one with the lower number starts first."""
    schedule, pieces = Schedule(buffers=False), pieces_of(0, 4 * len(order), len(order))
    all_to_all(schedule, np.array(order), pieces, pieces)
    graph = schedule.graph("all", [str(rank) for rank in range(len(order))])
    for place, rank in enumerate(order):
        receivers = [int(o.dst) for o in graph.operations if o.src == str(rank)]
        assert receivers == [*order[place + 1 :], *order[:place]]


@settings(max_examples=25)
@given(doublings=st.integers(1, 5))
def test_halving_and_doubling_takes_few_steps(doublings: int) -> None:
    """2 log2(n) steps of S/2, S/4, ..., S/n and back: 2(n - 1)/n * S bytes for each rank, as in a
    ring."""
    ranks = 2**doublings
    graph = all_reduce("halving-doubling", ranks, 4 * ranks)
    halves = [4 * ranks >> step for step in range(1, doublings + 1)]
    for rank in range(1, ranks + 1):
        own = [flow for flow in graph.flows if flow.src == f"h{rank}"]
        sent = sorted(graph.operations[id].size_bytes for flow in own for id in flow.operations)
        assert sent == sorted(2 * halves)
    assert steps(graph) == 2 * doublings


@settings(max_examples=25)
@given(ranks=st.integers(2, 40))
def test_tree_is_low_with_two_children_at_most(ranks: int) -> None:
    """2 ceil(log2 n) steps at most; all ranks are below the one root."""
    parents = parents_of(ranks)
    assert sorted(parents[parents < 0]) == [-1]
    assert np.bincount(parents[parents >= 0], minlength=ranks).max() <= 2
    assert steps(all_reduce("tree", ranks, 4 * ranks)) <= 2 * ceil(log2(ranks + 1))


@settings(max_examples=25)
@given(ranks=st.integers(2, 40))
def test_double_tree_shares_leaves_and_load(ranks: int) -> None:
    """At most one rank is a leaf in both trees. So all ranks send, and 2 S at most: S/2 up and down
    in one tree as a leaf, three times that in the other."""
    inner = set(parents_of(ranks).tolist()) - {-1}
    second = second_tree(ranks)
    inner_second = {int(second[place]) for place in inner}
    assert len(set(range(ranks)) - inner - inner_second) <= 1
    graph = all_reduce("double-tree", ranks, size := 8 * ranks)
    for rank in range(1, ranks + 1):
        own = [flow for flow in graph.flows if flow.src == f"h{rank}"]
        assert sum(graph.bytes_of(flow) for flow in own) <= 2 * size


@settings(max_examples=25)
@given(servers=st.integers(1, 4), gpus=st.integers(1, 4), floats=st.integers(1, 9))
def test_hierarchical_all_reduce_spares_the_rails(servers: int, gpus: int, floats: int) -> None:
    """2(g - 1)/g S inside, 2(N - 1)/N S/g along its rail for each rank, in as many steps as 2(g -
    1) + 2(N - 1)."""
    ranks = servers * gpus
    if ranks < 2:
        return
    graph = all_reduce("hierarchical", ranks, size := 4 * ranks * floats, gpus)
    inside, along = np.zeros(ranks), np.zeros(ranks)
    for flow in graph.flows:
        src, dst = int(flow.src[1:]) - 1, int(flow.dst[1:]) - 1
        same_server = src // gpus == dst // gpus
        assert same_server or src % gpus == dst % gpus, "a rail"
        (inside if same_server else along)[src] += graph.bytes_of(flow)
    assert set(inside) == {2 * (gpus - 1) * size // gpus}
    assert set(along) == {2 * (servers - 1) * size // servers // gpus}
    assert steps(graph) == 2 * (gpus - 1) + 2 * (servers - 1)


def test_chunks_alternate_over_channels() -> None:
    """Each channel is a separate flow between the same ranks, with its number in the name."""
    own = job(Kind.ALL_REDUCE, "ring", 2, 4000)
    graph = collective(own, cut=Cut(chunk_bytes=500, channels=2))
    assert [flow.name for flow in graph.flows] == [
        f"sum.{pair}{channel}" for channel in ("", "#2") for pair in ("h1-h2", "h2-h1")
    ]
    assert {len(flow.operations) for flow in graph.flows} == {4}
    assert graph.size_bytes.max() == 500


def test_start_and_priority_apply_to_every_operation() -> None:
    """For a collective that starts late, on its own priority."""
    graph = collective(job(Kind.ALL_REDUCE, "ring", 3, 300), start_ns=700, priority=5)
    assert {(o.not_before_ns, o.priority, o.verb) for o in graph.operations} == {
        (700, 5, Verb.WRITE)
    }
    assert {flow.traffic for flow in graph.flows} == {"sum"}


@pytest.mark.parametrize(
    ("kind", "algorithm", "gpus", "error"),
    [
        (Kind.ALL_REDUCE, "star", 1, "there is no star all-reduce"),
        (Kind.ALL_GATHER, "tree", 1, "there is no tree all-gather"),
        (Kind.ALL_REDUCE, "hierarchical", 3, "8 ranks are not a whole number of servers of 3 GPUs"),
    ],
)
def test_unsuitable_ranks_are_refused(kind: Kind, algorithm: str, gpus: int, error: str) -> None:
    """Before any operation is made."""
    with pytest.raises(ValueError, match=f"^{error}$"):
        collective(job(kind, algorithm, 8, 800), servers=in_a_row(8, gpus))


def test_thousand_ranks_fit() -> None:
    """Two million operations are a table, built column by column; each waits for the previous one
    at the left neighbour, so there is no cycle."""
    graph = all_reduce("ring", 1024, 16_384_000)
    assert len(graph.operations) == 2 * 1023 * 1024
    assert graph.total_bytes == 2 * 1023 * 16_384_000
    step = np.tile(np.arange(2 * 1023), 1024)
    assert (step[graph.later] == step[graph.earlier] + 1).all()
    assert graph.operations[-1].src == "h1024"
