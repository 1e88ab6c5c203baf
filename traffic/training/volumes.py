"""What all GPUs together send in a training step, in closed form.

n GPUs that all-reduce S bytes send 2(n - 1)·S in 2n(n - 1) messages, around a ring. An all-gather,
a reduce-scatter or an all-to-all is half of that. `training` explains A, t, c, p, v, d and m.

    tensor      for each block (attention, FFN), micro-batch and copy: 4(t - 1)·A, from an
                all-reduce forward and one backward. With sequence parallelism 5(t - 1)·A: forward
                an all-gather and a reduce-scatter, backward the same and once more an all-gather of
                what the block had as input (Korthikanti et al., "Reducing Activation Recomputation
                in Large Transformer Models", 2022, section 4.2). Embedding and output: a block
    context     for each layer and micro-batch: keys and values pass c - 1 GPUs forward. Backward
                they do so again, and their gradients make c hops to get home (Liu et al., "Ring
                Attention with Blockwise Transformers", 2023)
    pipeline    each of p·v - 1 borders, forward and backward: A for each GPU of a stage, A / t with
                sequence parallelism
    data        N = c·d copies, P bytes of parameters. Without ZeRO, and with stage 1: 2(N - 1)·P
                once a step. Stage 2: (m + 1)(N - 1)·P, as gradients are reduced after each
                micro-batch. Stage 3: 3m(N - 1)·P, as parameters are gathered for each pass
                (Rajbhandari et al., "ZeRO", SC'20, section 7; there m is 1)
    expert      for each layer, micro-batch and shard: to the experts and back, in both passes:
                4(N - 1)·k·A / t
"""

from __future__ import annotations

from dataclasses import dataclass

from traffic.training.training import Purpose, Training


@dataclass(frozen=True)
class Amount:
    """What all GPUs send for one purpose."""

    bytes: int
    messages: int


def amounts(training: Training) -> dict[Purpose, Amount]:
    """The sums of the table above."""
    return {
        Purpose.TENSOR: _tensor(training),
        Purpose.CONTEXT: _context(training),
        Purpose.PIPELINE: _pipeline(training),
        Purpose.DATA: _data(training),
        Purpose.EXPERT: _expert(training),
    }


def bytes_for(training: Training) -> dict[str, int]:
    """Purpose -> bytes that all GPUs send for it."""
    return {purpose.value: amount.bytes for purpose, amount in amounts(training).items()}


def gathers(training: Training) -> int:
    """How many all-gathers and reduce-scatters each parameter takes part in; an all-reduce counts
    as both."""
    m = training.micro_batches
    return {0: 2, 1: 2, 2: m + 1, 3: 3 * m}[training.zero]


def _around(times: int, ranks: int, size_bytes: int) -> Amount:
    """All-gathers, reduce-scatters or all-to-alls of `size_bytes` among `ranks` GPUs."""
    return Amount(times * (ranks - 1) * size_bytes, times * (ranks - 1) * ranks)


def _tensor(training: Training) -> Amount:
    layout, model = training.layout, training.model
    blocks = model.layers * (1 if model.top_k else 2) + (model.vocabulary > 0)
    each = 5 if training.sequence_parallel else 4
    times = blocks * each * training.micro_batches * layout.copies
    return _around(times, layout.tensor, training.activation_bytes)


def _context(training: Training) -> Amount:
    layout, c = training.layout, training.layout.context
    hops = (c - 1) + (c - 1) + c if c > 1 else 0
    messages = training.model.layers * training.micro_batches * hops * c
    messages *= layout.data * layout.tensor
    return Amount(messages * training.kv_bytes, messages)


def _pipeline(training: Training) -> Amount:
    layout = training.layout
    messages = 2 * (layout.stages - 1) * training.micro_batches * layout.copies * layout.tensor
    return Amount(messages * training.stage_bytes, messages)


def _data(training: Training) -> Amount:
    layout, model = training.layout, training.model
    size_bytes = model.layers * training.layer_bytes + 2 * training.embedding_bytes
    units = model.layers + 2 * (model.vocabulary > 0)
    times = gathers(training) * layout.tensor
    return Amount(
        _around(times, layout.copies, size_bytes).bytes,
        _around(times * units, layout.copies, 0).messages,
    )


def _expert(training: Training) -> Amount:
    layout, model = training.layout, training.model
    times = 4 * model.layers * training.micro_batches * layout.tensor if model.top_k else 0
    return _around(times, layout.copies, training.expert_bytes)
