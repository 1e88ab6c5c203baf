"""Training steps and experts: volumes in closed form, order of work, and no dependency cycle."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traffic.collectives.moe import draw_tokens, layer
from traffic.collectives.schedule import Schedule
from traffic.graph import OperationGraph
from traffic.models.published import published
from traffic.models.transformer import Transformer
from traffic.training.order import passes
from traffic.training.step import StepBuilder
from traffic.training.training import Layout, Purpose, Training
from traffic.training.volumes import amounts, bytes_for
from traffic.verb import Verb

SPEED = 1000.0
"""Operations per nanosecond."""
EVERYTHING = frozenset({Purpose.TENSOR, Purpose.CONTEXT, Purpose.PIPELINE, Purpose.DATA})
NOTHING: frozenset[Purpose] = frozenset()


def classic(layers: int, top_k: int = 0) -> Transformer:
    """Multi-head attention, and a plain FFN of four times the hidden size, which is 64."""
    return Transformer(layers, 64, 4, 4, 16, 256, gated=False, top_k=top_k)


def built(training: Training) -> tuple[Schedule, OperationGraph]:
    schedule = StepBuilder(training, SPEED).build()
    ranks = [f"h{n}" for n in range(training.layout.ranks)]
    return schedule, schedule.graph("step", ranks)


def sent_between(graph: OperationGraph, layout: Layout) -> dict[str, int]:
    """Bytes by the dimension in which the two ends differ. `copies`: replica, or part of a
    sequence, or both."""
    sent = {"tensor": 0, "pipeline": 0, "copies": 0}
    shape = (layout.pipeline, layout.data, layout.context, layout.tensor)
    for flow in graph.message_flows:
        src, dst = (np.unravel_index(int(host[1:]), shape) for host in (flow.src, flow.dst))
        stage, replica, part, shard = (a != b for a, b in zip(src, dst, strict=True))
        differs = (shard, stage, replica or part)
        assert sum(differs) == 1, "never across two dimensions at once"
        sent[list(sent)[differs.index(True)]] += graph.bytes_of(flow)
    return sent


def end_ns(graph: OperationGraph, bytes_per_ns: float) -> float:
    """When the last operation ends, if each message takes its bytes at this rate, alone."""
    lasts = graph.lasts_ns + graph.size_bytes / bytes_per_ns
    over = np.zeros(len(lasts))
    for number in nx.topological_sort(graph.dependencies()):
        waits = graph.earlier[slice(*np.searchsorted(graph.later, (number, number + 1)))]
        over[number] = over[waits].max(initial=0) + lasts[number]
    return float(over.max())


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
    copies      l·t groups: 2(d - 1) times 12h²·2/t of gradients (with experts 4h²), and with
                experts 4·m all-to-alls of k·A/t: (d - 1) times each
    """
    layers, hidden, sequence, batch = 2 * pipeline, 64, 32, 2
    layout = Layout(tensor, pipeline, data)
    training = Training(classic(layers, top_k), layout, sequence, batch, batches)
    activations = batch * sequence * hidden * 2
    _, graph = built(training)
    reduces, shared = (2, 4) if top_k else (4, 12)
    gradients = layers * 2 * (data - 1) * shared * hidden**2 * 2
    tokens = layers * batches * 4 * (data - 1) * top_k * activations
    assert sent_between(graph, layout) == {
        "tensor": layers * batches * data * reduces * 2 * (tensor - 1) * activations,
        "pipeline": 2 * (pipeline - 1) * batches * data * tensor * activations,
        "copies": gradients + tokens,
    }
    sent = bytes_for(training)
    assert (sent["data"], sent["expert"]) == (gradients, tokens)
    assert sum(sent.values()) == graph.total_bytes
    assert nx.is_directed_acyclic_graph(graph.dependencies())


@settings(max_examples=40, deadline=None)
@given(
    tensor=st.sampled_from([1, 2]),
    pipeline=st.integers(1, 3),
    data=st.integers(1, 2),
    context=st.integers(1, 3),
    virtual=st.integers(1, 2),
    turns=st.integers(1, 2),
    zero=st.integers(0, 3),
    prefetch=st.integers(0, 2),
    sequence_parallel=st.booleans(),
    top_k=st.integers(0, 1),
    vocabulary=st.sampled_from([0, 128]),
    overlap=st.sampled_from([EVERYTHING, NOTHING]),
)
def test_closed_forms_hold_for_any_mix_of_parallelisms(
    tensor: int,
    pipeline: int,
    data: int,
    context: int,
    virtual: int,
    turns: int,
    zero: int,
    prefetch: int,
    sequence_parallel: bool,
    top_k: int,
    vocabulary: int,
    overlap: frozenset[Purpose],
) -> None:
    """Bytes and messages of a step are the sums that are known without building it."""
    virtual = virtual if pipeline > 1 else 1
    layout = Layout(tensor, pipeline, data, context, virtual)
    model = replace(classic(layout.stages, top_k), kv_heads=2, vocabulary=vocabulary)
    batches = turns * pipeline
    training = Training(
        model, layout, 24, 1, batches, 2, zero, prefetch, sequence_parallel, overlap
    )
    _, graph = built(training)
    wanted = amounts(training)
    assert graph.total_bytes == sum(amount.bytes for amount in wanted.values())
    messages = sum(len(flow.operations) for flow in graph.message_flows)
    assert messages == sum(amount.messages for amount in wanted.values())
    assert nx.is_directed_acyclic_graph(graph.dependencies())


@pytest.mark.parametrize(
    ("name", "billions"), [("llama-3-8b", 8.030), ("llama-3-70b", 70.55), ("llama-3-405b", 405.9)]
)
@pytest.mark.parametrize(("zero", "times"), [(0, 2), (1, 2), (2, 3), (3, 6)])
def test_replicas_send_every_parameter_of_a_published_model(
    name: str, billions: float, zero: int, times: int
) -> None:
    """Two micro-batches, 8 copies on 2 x 2 GPUs: 7 times the parameters of 2 bytes, twice a step,
    with ZeRO 2 three times, with ZeRO 3 three times a micro-batch. Norms are left out."""
    training = Training(published()[name].sizes, Layout(2, 2, 8), 8192, micro_batches=2, zero=zero)
    sent = amounts(training)[Purpose.DATA].bytes
    assert sent == pytest.approx(times * 7 * 2 * billions * 1e9, rel=2e-3)


def test_a_step_of_llama_3_8b_sends_its_parameters() -> None:
    """The built graph on two GPUs with ZeRO 3 sends three times 16 GB."""
    training = Training(published()["llama-3-8b"].sizes, Layout(data=2), 512, zero=3)
    _, graph = built(training)
    assert graph.total_bytes == pytest.approx(3 * 2 * 8_030_261_248, rel=1e-3)


def test_grouped_query_attention_sends_fewer_keys_and_values() -> None:
    """Llama 3 70B with 64 query and 8 key/value heads: an eighth of what 64 would send."""
    sizes = published()["llama-3-70b"].sizes
    layout = Layout(context=4)
    few, all_heads = (
        bytes_for(Training(replace(sizes, kv_heads=heads), layout, 8192))["context"]
        for heads in (8, 64)
    )
    assert all_heads == 8 * few
    hops = 4 * (3 + 3 + 4)
    assert few == 80 * hops * (8192 // 4) * 2 * 8 * 128 * 2


def test_sequence_parallelism_sends_an_all_gather_more() -> None:
    """5 instead of 4 times (t - 1)·A in a block, and the next stage gets a t-th."""
    training = Training(classic(4), Layout(4, 2), 32, micro_batches=3)
    plain, shared = (
        bytes_for(replace(training, sequence_parallel=wanted)) for wanted in (False, True)
    )
    assert shared["tensor"] * 4 == plain["tensor"] * 5
    assert shared["pipeline"] * 4 == plain["pipeline"]


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_pipeline_has_the_bubble_of_1f1b(stages: int) -> None:
    """(m + p - 1) times a micro-batch through a stage, forward and twice that back."""
    schedule, _ = built(Training(classic(4), Layout(1, stages), 32, micro_batches=6))
    a_layer = 24 * 32 * 64**2 + 4 * 32**2 * 64
    in_a_stage = 4 // stages * 3 * a_layer / SPEED
    assert schedule.work_alone_ns() == pytest.approx((6 + stages - 1) * in_a_stage, rel=0.001)


@pytest.mark.parametrize(("stages", "virtual"), [(2, 2), (2, 4), (4, 2), (4, 4)])
def test_interleaving_divides_the_bubble(stages: int, virtual: int) -> None:
    """m·v + p - 1 times a micro-batch through a virtual stage, which is v times shorter."""
    layers, batches = stages * virtual, 2 * stages
    layout = Layout(pipeline=stages, virtual=virtual)
    schedule, _ = built(Training(classic(layers), layout, 32, micro_batches=batches))
    a_layer = 3 * (24 * 32 * 64**2 + 4 * 32**2 * 64) / SPEED
    expected = (batches * virtual + stages - 1) * a_layer
    assert schedule.work_alone_ns() == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize(("stage", "ahead"), [(0, 10), (1, 8), (2, 6), (3, 4)])
def test_interleaved_stages_run_ahead_as_in_megatron(stage: int, ahead: int) -> None:
    """2(p - s - 1) + (v - 1)·p passes forward come before the first pair, of p = 4 and v = 2."""
    order = list(passes(stage, 4, 2, 8))
    first_back = next(place for place, one in enumerate(order) if one.way == "B")
    assert first_back == ahead + 1
    assert len({*order}) == len(order) == 2 * 2 * 8


@pytest.mark.parametrize("overlap", [EVERYTHING, NOTHING])
@pytest.mark.parametrize("zero", [0, 3])
def test_gpu_computes_one_thing_after_another(overlap: frozenset[Purpose], zero: int) -> None:
    """All work of a rank is one chain, in every schedule."""
    layout = Layout(2, 2, 1, context=2, virtual=2)
    training = Training(classic(4), layout, 32, micro_batches=2, zero=zero, overlap=overlap)
    _, graph = built(training)
    waits = nx.transitive_closure_dag(graph.dependencies())
    for flow in graph.flows:
        if flow.verb is Verb.COMPUTE:
            pairs = combinations(flow.operations, 2)
            assert all(waits.has_edge(a, b) or waits.has_edge(b, a) for a, b in pairs)


def test_a_dense_layer_is_two_works_each_way() -> None:
    """Halves, layers of a stage, ways, micro-batches."""
    _, graph = built(Training(classic(4), Layout(2, 2, 2), 32, micro_batches=3))
    works = [len(flow.operations) for flow in graph.flows if flow.verb is Verb.COMPUTE]
    assert works == [2 * 2 * 2 * 3] * 8


@pytest.mark.parametrize(
    ("purpose", "layout", "zero"),
    [
        (Purpose.TENSOR, Layout(tensor=2), 0),
        (Purpose.CONTEXT, Layout(context=2), 0),
        (Purpose.PIPELINE, Layout(pipeline=2), 0),
        (Purpose.DATA, Layout(data=2), 0),
        (Purpose.DATA, Layout(data=2), 3),
    ],
)
def test_overlap_shortens_a_step_and_changes_no_work(
    purpose: Purpose, layout: Layout, zero: int
) -> None:
    """The same bytes and the same computation; less of the communication is waited for."""
    training = Training(classic(4), layout, 32, micro_batches=4, zero=zero, overlap=NOTHING)
    (alone, without), (same, with_it) = (
        built(replace(training, overlap=overlap)) for overlap in (NOTHING, frozenset({purpose}))
    )
    assert alone.work_alone_ns() == pytest.approx(same.work_alone_ns(), rel=1e-3)
    assert without.total_bytes == with_it.total_bytes
    assert end_ns(with_it, 1.0) < 0.99 * end_ns(without, 1.0)


def test_prefetch_hides_the_gathers_of_zero_3() -> None:
    """Without it, a GPU waits for the parameters of every layer."""
    training = Training(classic(8), Layout(data=2), 32, zero=3)
    none, one = (built(replace(training, prefetch=ahead))[1] for ahead in (0, 1))
    assert none.total_bytes == one.total_bytes
    assert end_ns(one, 10.0) < end_ns(none, 10.0)


def test_gradient_sums_overlap_with_computation() -> None:
    """No computation waits for replicas."""
    _, graph = built(Training(classic(2), Layout(data=2), 32))
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
