"""Inference: the bytes of KV caches in closed form, the order of work, and what is drawn."""

from __future__ import annotations

from random import Random
from statistics import mean

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traffic.graph import Asks, OperationGraph
from traffic.inference import Prompt, Serving, draw_prompts, inference
from traffic.models.published import published
from traffic.verb import Verb

LAYERS, LAYER_BYTES, TOKEN_NS, FIRST_TOKEN_NS = 4, 256, 100.0, 5_000


def served(
    prompts: list[Prompt], prefill: int = 2, decode: int = 3, *, layer_wise: bool = True
) -> OperationGraph:
    serving = Serving(LAYERS, LAYER_BYTES, TOKEN_NS, FIRST_TOKEN_NS, layer_wise)
    sources = [f"p{number}" for number in range(prefill)]
    targets = [f"d{number}" for number in range(decode)]
    return inference("chat", sources, targets, prompts, serving, start_ns=1000)


def ends_without_messages(graph: OperationGraph) -> np.ndarray:
    """When each operation ends if messages take no time: the longest path."""
    ends = np.zeros(len(graph.size_bytes), np.int64)
    for number in nx.topological_sort(graph.dependencies()):
        waits = graph.earlier[slice(*np.searchsorted(graph.later, (number, number + 1)))]
        begins = max(ends[waits].max(initial=0), graph.not_before_ns[number])
        ends[number] = begins + graph.lasts_ns[number]
    return ends


@settings(max_examples=25)
@given(
    count=st.integers(1, 20),
    prefill=st.integers(1, 4),
    decode=st.integers(1, 4),
    layer_wise=st.booleans(),
    seed=st.integers(0, 99),
)
def test_all_keys_and_values_are_sent(
    count: int, prefill: int, decode: int, layer_wise: bool, seed: int
) -> None:
    """2·L·G·d·C·e bytes of each prompt, in a message for each layer."""
    prompts = draw_prompts(count, 1000.0, [10, 100], Random(seed))
    graph = served(prompts, prefill, decode, layer_wise=layer_wise)
    tokens = sum(prompt.tokens for prompt in prompts)
    assert graph.total_bytes == LAYERS * LAYER_BYTES * tokens
    messages = sum(len(flow.operations) for flow in graph.message_flows)
    assert messages == LAYERS * count
    assert {flow.verb for flow in graph.message_flows} == {Verb.WRITE}
    assert nx.is_directed_acyclic_graph(graph.dependencies())


@pytest.mark.parametrize(
    ("name", "bytes_of_token"),
    [("llama-3-8b", 131_072), ("llama-3-70b", 327_680), ("llama-2-7b", 524_288)],
)
def test_cache_of_a_token_is_that_of_the_published_model(name: str, bytes_of_token: int) -> None:
    """With two bytes an element; Llama 2 7B has as many key/value heads as query heads."""
    sizes = published()[name].sizes
    assert sizes.layers * sizes.kv_elements * 2 == bytes_of_token


@pytest.mark.parametrize("layer_wise", [True, False])
def test_a_prefill_host_serves_one_prompt_after_another(layer_wise: bool) -> None:
    """Two prompts that arrive together at one host: the second has its first token later by the
    first one's prefill."""
    graph = served([Prompt(0, 50), Prompt(0, 70)], prefill=1, layer_wise=layer_wise)
    ends = ends_without_messages(graph)
    answers = ends[graph.ends[graph.asks == Asks.PROMPT]] - 1000
    assert answers.tolist() == [5_000 + FIRST_TOKEN_NS, 5_000 + 7_000 + FIRST_TOKEN_NS]


def test_layers_are_sent_while_later_ones_are_computed() -> None:
    """Layer by layer, a quarter of the prefill apart; whole, all at its end."""
    for layer_wise, expected in ((True, [1250, 2500, 3750, 5000]), (False, [5000] * 4)):
        graph = served([Prompt(0, 50)], layer_wise=layer_wise)
        ends, (flow,) = ends_without_messages(graph), graph.message_flows
        posted = ends[flow.operations.start : flow.operations.stop] - 1000
        assert posted.tolist() == expected


def test_the_wait_begins_with_the_end_of_prefill() -> None:
    """The transfer begins with the first layer, the wait with the last, the prompt on arrival."""
    graph = served([Prompt(300, 50)])
    ends = ends_without_messages(graph)
    begin = {Asks(asks): ends[graph.begins[place]] for place, asks in enumerate(graph.asks)}
    assert begin[Asks.PROMPT] == 1000 + 300
    assert begin[Asks.KV_TRANSFER] == 1000 + 300 + 1250
    assert begin[Asks.KV_WAIT] == 1000 + 300 + 5000
    assert graph.carries.tolist() == [4 * 256 * 50, 4 * 256 * 50, 256 * 50]


def test_every_prefill_host_sends_to_every_decode_host() -> None:
    """Turns are shifted, although both numbers are the same."""
    graph = served([Prompt(0, 10)] * 16, prefill=4, decode=4)
    assert len({(flow.src, flow.dst) for flow in graph.message_flows}) == 16


def test_prompts_arrive_at_the_given_rate() -> None:
    """Gaps have the mean 1 / rate; 5 standard deviations of a mean of 10,000 are 5 %."""
    prompts = draw_prompts(10_000, 500.0, [1, 3], Random(7))
    assert prompts[-1].arrives_ns / 10_000 == pytest.approx(2_000_000, rel=0.05)
    assert mean(prompt.tokens for prompt in prompts) == pytest.approx(2, abs=0.05)
    assert draw_prompts(10_000, 500.0, [1, 3], Random(7)) == prompts
