"""Training steps and experts: volumes in closed form, order of work, and no dependency cycle."""

from __future__ import annotations

import math
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traffic.collectives.moe import draw_tokens, layer
from traffic.collectives.schedule import Schedule
from traffic.graph import OperationGraph, Verb
from traffic.training.model import Layout, Model, volumes_of
from traffic.training.step import StepBuilder

SPEED = 1000.0
"""Operations per nanosecond."""


def built(model: Model, layout: Layout) -> tuple[Schedule, OperationGraph]:
    schedule = StepBuilder(model, layout, SPEED).build()
    ranks = [f"h{n}" for n in range(layout.ranks)]
    return schedule, schedule.graph("step", ranks)


def sent_between(graph: OperationGraph, layout: Layout) -> dict[str, int]:
    """Bytes by the dimension in which the two ends differ: shard, stage, or replica."""
    sent = {"tensor": 0, "pipeline": 0, "replicas": 0}
    for flow in graph.message_flows:
        (src_stage, src_replica, src_shard), (stage, replica, shard) = (
            np.unravel_index(int(host[1:]), (layout.pipeline, layout.data, layout.tensor))
            for host in (flow.src, flow.dst)
        )
        differs = (src_shard != shard, src_stage != stage, src_replica != replica)
        assert sum(differs) == 1, "never across two dimensions at once"
        sent[list(sent)[differs.index(True)]] += graph.bytes_of(flow)
    return sent


@settings(max_examples=15)
@given(
    tensor=st.sampled_from([1, 2, 4]),
    pipeline=st.integers(1, 3),
    data=st.integers(1, 3),
    batches=st.integers(1, 5),
    top_k=st.integers(0, 2),
)
def test_step_sends_the_volumes_of_the_closed_forms(
    tensor: int, pipeline: int, data: int, batches: int, top_k: int
) -> None:
    """Of l layers, m micro-batches, A = b·s·h·2 bytes of activations, on t·p·d GPUs:

    tensor      l·m·d groups, 4 all-reduces of A (with experts 2): 2(t - 1)·A each
    pipeline    p - 1 borders, m·d·t times A, forward and backward
    replicas    l·t groups: 2(d - 1) times 12h²·2/t of gradients (with experts 4h²), and with
                experts 4·m all-to-alls of k·A/t: (d - 1) times each
    """
    layers, hidden, sequence, batch = 2 * pipeline, 64, 32, 2
    model = Model(layers, hidden, sequence, batch, batches, top_k=top_k)
    layout = Layout(tensor, pipeline, data)
    activations = batch * sequence * hidden * 2
    _, graph = built(model, layout)
    reduces, shared = (2, 4) if top_k else (4, 12)
    gradients = layers * 2 * (data - 1) * shared * hidden**2 * 2
    tokens = layers * batches * 4 * (data - 1) * top_k * activations
    assert sent_between(graph, layout) == {
        "tensor": layers * batches * data * reduces * 2 * (tensor - 1) * activations,
        "pipeline": 2 * (pipeline - 1) * batches * data * tensor * activations,
        "replicas": gradients + tokens,
    }
    volumes = volumes_of(model, layout)
    assert (volumes.data, volumes.expert) == (gradients, tokens)
    assert volumes.total == graph.total_bytes
    assert nx.is_directed_acyclic_graph(graph.dependencies())


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_pipeline_has_the_bubble_of_1f1b(stages: int) -> None:
    """(m + p - 1) times a micro-batch through a stage, forward and twice that back."""
    model = Model(layers=4, hidden=64, sequence=32, micro_batches=6)
    schedule, _ = built(model, Layout(1, stages, 1))
    a_layer = 24 * 32 * 64**2 + 4 * 32**2 * 64
    in_a_stage = 4 // stages * 3 * a_layer / SPEED
    assert schedule.work_alone_ns() == pytest.approx((6 + stages - 1) * in_a_stage, rel=0.001)


def test_gpu_computes_one_thing_after_another() -> None:
    """All work of a rank is one chain, in every schedule."""
    _, graph = built(Model(4, 64, 32, micro_batches=3), Layout(2, 2, 2))
    waits = nx.transitive_closure_dag(graph.dependencies())
    for flow in graph.flows:
        if flow.verb is Verb.COMPUTE:
            own = list(flow.operations)
            assert len(own) == 2 * 2 * 2 * 3, "halves, layers of a stage, ways, micro-batches"
            pairs = combinations(own, 2)
            assert all(waits.has_edge(a, b) or waits.has_edge(b, a) for a, b in pairs)


def test_gradient_sums_overlap_with_computation() -> None:
    """No computation waits for replicas."""
    _, graph = built(Model(2, 64, 32), Layout(1, 1, 2))
    work = {id for f in graph.flows if f.verb is Verb.COMPUTE for id in f.operations}
    assert not work & {
        later
        for earlier, later in zip(graph.earlier.tolist(), graph.later.tolist(), strict=True)
        if earlier not in work
    }


@settings(max_examples=25)
@given(
    ranks=st.integers(2, 8),
    experts=st.integers(1, 40),
    top_k=st.integers(1, 8),
    seed=st.integers(0, 99),
)
def test_every_token_returns_to_its_rank(ranks: int, experts: int, top_k: int, seed: int) -> None:
    """Each rank gets back what it sent; all its choices are made; work waits for all tokens."""
    top_k = min(top_k, experts)
    tokens = draw_tokens(ranks, experts, 100, top_k, 1.0, np.random.default_rng(seed))
    assert tokens.sum(axis=1).tolist() == [100 * top_k] * ranks
    assert not tokens[:, experts:].any(), "ranks without an expert get no token"
    schedule = Schedule(buffers=False)
    layer(schedule, tokens, 4096, 10.0)
    graph = schedule.graph("moe", names := [f"h{n}" for n in range(ranks)])
    for a, src in enumerate(names):
        for b, dst in enumerate(names):
            if a != b:
                both_ways = int(tokens[a, b] + tokens[b, a]) * 4096
                assert graph.bytes_between(src, dst) == both_ways
    assert schedule.work_alone_ns() == tokens.sum(axis=0).max() * 10
    assert nx.is_directed_acyclic_graph(graph.dependencies())


@settings(max_examples=25)
@given(ranks=st.integers(2, 8), top_k=st.integers(1, 8), skew=st.floats(0, 4))
def test_token_goes_to_distinct_experts(ranks: int, top_k: int, skew: float) -> None:
    """With one expert per rank, no rank gets more than all tokens, and k of k get all of them."""
    top_k = min(top_k, ranks)
    tokens = draw_tokens(ranks, ranks, 50, top_k, skew, np.random.default_rng(1))
    assert tokens.max() <= 50
    all_ranks = draw_tokens(ranks, ranks, 50, ranks, skew, np.random.default_rng(1))
    assert (all_ranks == 50).all()


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_expert_sets_follow_their_popularities(top_k: int) -> None:
    """A set's weight is the product of its members' popularities. Each rank's share of the tokens
    is within 5 standard deviations of a sum over all sets."""
    ranks, drawn, skew = 5, 40_000, 1.3
    tokens = draw_tokens(ranks, ranks, drawn, top_k, skew, np.random.default_rng(2)).sum(axis=0)
    popularity = 1 / np.arange(1, ranks + 1) ** skew
    sets = {one: math.prod(popularity[list(one)]) for one in combinations(range(ranks), top_k)}
    expected = [
        sum(weight for one, weight in sets.items() if expert in one) / sum(sets.values())
        for expert in range(ranks)
    ]
    shares = np.sort(tokens)[::-1] / (ranks * drawn)
    assert shares == pytest.approx(expected, abs=5 * 0.5 / math.sqrt(ranks * drawn))


def test_very_uneven_experts_can_be_drawn() -> None:
    """The product of 64 popularities is 1e-356, less than a floating-point number has."""
    tokens = draw_tokens(4, 128, 1000, 64, 4.0, np.random.default_rng(1))
    assert tokens.sum(axis=1).tolist() == [64_000] * 4


def test_skew_makes_some_experts_popular() -> None:
    """Without skew no expert gets twice the mean; with a skew of 1.2 one does. The same seed draws
    the same."""
    even, skewed, again = (
        draw_tokens(8, 8, 10_000, 1, skew, np.random.default_rng(3)).sum(axis=0)
        for skew in (0.0, 1.2, 1.2)
    )
    assert even.max() < 1.1 * even.mean()
    assert skewed.max() > 2 * skewed.mean()
    assert (skewed == again).all()
