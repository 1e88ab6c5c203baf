"""Collectives: their closed forms, and that the waiting in them leads somewhere."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traffic.collectives import ring_all_reduce
from traffic.graph import Flow, OperationGraph, Verb


def ranks(count: int) -> list[str]:
    return [f"h{n}" for n in range(1, count + 1)]


def sizes(graph: OperationGraph, flow: Flow) -> list[int]:
    return [graph.operations[id].size_bytes for id in flow.operations]


@given(count=st.integers(2, 12), piece=st.integers(1, 10**6))
def test_a_ring_all_reduce_sends_what_the_closed_form_says(count: int, piece: int) -> None:
    """2(n - 1) steps and 2(n - 1)/n * S bytes for each rank, all to its right neighbour."""
    size = count * piece
    graph = ring_all_reduce("sum", ranks(count), size)
    names = ranks(count)
    assert [(flow.src, flow.dst) for flow in graph.flows] == list(
        zip(names, [*names[1:], names[0]], strict=True)
    )
    for flow in graph.flows:
        assert sizes(graph, flow) == [piece] * (2 * (count - 1))
        assert graph.bytes_of(flow) * count == 2 * (count - 1) * size


@given(count=st.integers(2, 12), extra=st.integers(0, 100))
def test_uneven_pieces_are_all_sent_and_a_byte_apart(count: int, extra: int) -> None:
    """What the ranks do not divide is spread; over all ranks the sum is 2(n - 1) * S."""
    size = count + extra
    graph = ring_all_reduce("sum", ranks(count), size)
    assert graph.total_bytes == 2 * (count - 1) * size
    assert set(graph.size_bytes.tolist()) <= {size // count, -(-size // count)}


@given(count=st.integers(2, 9))
def test_a_step_waits_for_what_it_passes_on(count: int) -> None:
    """Step s of a rank waits for step s - 1 of the left neighbour, and for nothing else."""
    graph = ring_all_reduce("sum", ranks(count), count * 100)
    for place, flow in enumerate(graph.flows):
        left = graph.flows[place - 1]
        first, *others = [graph.operations[id] for id in flow.operations]
        assert first.after == ()
        assert [o.after for o in others] == [(id,) for id in left.operations[:-1]]
        assert all(left.dst == o.src for o in others), "so they wait for the delivery"


@given(count=st.integers(2, 9))
def test_no_operation_waits_for_itself(count: int) -> None:
    """The dependencies have no cycle, and the longest chain is all steps."""
    dependencies = ring_all_reduce("sum", ranks(count), 10**6).dependencies()
    assert nx.is_directed_acyclic_graph(dependencies)
    assert nx.dag_longest_path_length(dependencies) == 2 * (count - 1) - 1


@given(count=st.integers(2, 9))
def test_everybody_has_the_sum_of_every_piece_in_the_end(count: int) -> None:
    """Played through by the dependencies alone: what arrives is added and passed on.

    A rank begins with its own piece; what it sends later is what it waited for.
    """
    names = ranks(count)
    graph = ring_all_reduce("sum", names, count)
    summed = {(rank, piece): {rank} for rank in names for piece in names}
    carried: dict[int, str] = {}
    for id in nx.topological_sort(graph.dependencies()):
        operation = graph.operations[id]
        carried[id] = carried[operation.after[0]] if operation.after else operation.src
        summed[operation.dst, carried[id]] |= summed[operation.src, carried[id]]
    assert all(parts == set(names) for parts in summed.values())


def test_start_and_priority_hold_for_every_operation() -> None:
    """A collective that starts late, on a class of its own."""
    graph = ring_all_reduce("sum", ranks(3), 300, start_ns=700, priority=5)
    assert {(o.not_before_ns, o.priority, o.verb) for o in graph.operations} == {
        (700, 5, Verb.WRITE)
    }
    assert {flow.traffic for flow in graph.flows} == {"sum"}


def test_a_thousand_ranks_fit() -> None:
    """Two million operations are a table; the longest chain is found column by column."""
    graph = ring_all_reduce("sum", ranks(1024), 16_384_000)
    assert len(graph.operations) == 2 * 1023 * 1024
    assert graph.total_bytes == 2 * 1023 * 16_384_000
    step = np.tile(np.arange(2 * 1023), 1024)
    assert (step[graph.later] == step[graph.earlier] + 1).all(), "so there is no cycle"
    assert graph.operations[-1].src == "h1024"
