"""Published models: their parameters and KV caches are those that their publishers state."""

from __future__ import annotations

import pytest

from traffic.models.published import published
from traffic.models.transformer import Transformer

MODELS = published()
STATED_BILLIONS = {
    "gpt-3-175b": 174.6,
    "bloom-176b": 176.25,
    "gemma-2-27b": 27.23,
    "llama-2-7b": 6.738,
    "llama-2-13b": 13.016,
    "llama-2-70b": 68.977,
    "llama-3-1b": 1.236,
    "llama-3-3b": 3.213,
    "llama-3-8b": 8.030,
    "llama-3-70b": 70.554,
    "llama-3-405b": 405.853,
    "mistral-7b": 7.242,
    "mistral-large-123b": 122.610,
    "qwen-2.5-7b": 7.616,
    "qwen-2.5-14b": 14.770,
    "qwen-2.5-32b": 32.764,
    "qwen-2.5-72b": 72.706,
    "qwen-3-8b": 8.191,
    "qwen-3-32b": 32.762,
    "dbrx-132b": 131.6,
    "gpt-oss-20b": 20.91,
    "gpt-oss-120b": 116.83,
    "mixtral-8x7b": 46.703,
    "mixtral-8x22b": 140.6,
    "qwen-3-30b": 30.532,
    "qwen-3-235b": 235.094,
}
"""Parameters as the publishers' model cards and weights state them, in 10^9."""


def test_every_model_has_a_stated_number_of_parameters() -> None:
    assert set(MODELS) == set(STATED_BILLIONS)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_that_are_published(name: str) -> None:
    """0.1 % is left for biases, norms of queries and keys, and rounding."""
    assert MODELS[name].sizes.parameters / 1e9 == pytest.approx(STATED_BILLIONS[name], rel=1e-3)


def test_parameters_of_llama_3_are_exact() -> None:
    """The numbers of elements in the published weights."""
    exact = [MODELS[f"llama-3-{size}"].sizes.parameters for size in ("8b", "70b", "405b")]
    assert exact == [8_030_261_248, 70_553_706_496, 405_853_388_800]


def test_experts_are_in_the_layers_of_models_that_have_them() -> None:
    """A token of Mixtral 8x7B passes 12.9 of 46.7 billion parameters, as its paper states."""
    mixtral = MODELS["mixtral-8x7b"].sizes
    idle = mixtral.layers * (mixtral.experts - mixtral.top_k) * mixtral.ffn_parameters
    assert (mixtral.parameters - idle) / 1e9 == pytest.approx(12.9, abs=0.05)


def test_kv_cache_of_4096_tokens_with_two_bytes_an_element() -> None:
    """80 layers with 8 key/value heads of 128 elements: 1,342,177,280 bytes."""
    sizes = MODELS["llama-3-70b"].sizes
    assert sizes.layers * sizes.kv_elements * 4096 * 2 == 1_342_177_280


def test_classic_sizes_have_twelve_times_the_square_of_the_hidden_size() -> None:
    """Multi-head attention and a plain FFN of four times the hidden size (Narayanan et al.)."""
    sizes = Transformer(1, 1024, 16, 16, 64, 4096, gated=False)
    assert sizes.attention_parameters + sizes.ffn_parameters == 12 * 1024**2
