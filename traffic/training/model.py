"""Arithmetic of a transformer trained on many GPUs: floating-point operations and bytes sent.

A micro-batch has b sequences of s tokens; h is the hidden size, and an element has e bytes. t GPUs
share a layer (tensor-parallel), p stages of layers follow each other (pipeline), and d replicas
work on different sequences (data-parallel). A step has m micro-batches.

    what                            for each                            bytes
    activations A                   micro-batch, between layers         b·s·h·e
    tensor: all-reduce              layer, micro-batch: 2 forward,      A
                                    2 backward
    pipeline: to the next stage     micro-batch: forward, backward      A for each GPU of the stage
    data: all-reduce of gradients   layer, once a step                  (4 + 8)·h²·e / t
    expert: to k experts and back   layer, micro-batch: 2 forward,      k·A/t for each GPU
                                    2 backward

Experts replace the 8·h² parameters of the layer's second half. Each replica holds some of them, so
that their gradients need no all-reduce; tokens are sent to them instead.

The forward pass of a layer takes 8·b·s·h² + 4·b·s²·h operations for attention and 16·b·s·h² for the
rest (k times as many with experts); the backward pass takes twice as many. Sources: Narayanan et
al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC'21,
sections 2 and 3.2 and its appendix; Shoeybi et al., "Megatron-LM" (2019), section 3.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

FORWARD, BACKWARD = 1, 2
"""The operations of each pass, in multiples of the forward pass."""


@dataclass(frozen=True)
class Model:
    """A transformer, and the size of a training step."""

    layers: int
    hidden: int
    sequence: int
    micro_batch: int = 1
    micro_batches: int = 1
    element_bytes: int = 2
    top_k: int = 0
    """The number of experts that a token is sent to; 0: the model has none."""

    @property
    def activation_bytes(self) -> int:
        return self.micro_batch * self.sequence * self.hidden * self.element_bytes

    @property
    def attention_operations(self) -> int:
        """Floating-point operations of a layer's first half, forward, for a micro-batch."""
        tokens = self.micro_batch * self.sequence
        return 8 * tokens * self.hidden**2 + 4 * tokens * self.sequence * self.hidden

    @property
    def rest_operations(self) -> int:
        """The same for the second half."""
        return 16 * self.micro_batch * self.sequence * self.hidden**2 * max(1, self.top_k)

    @property
    def shared_parameters(self) -> int:
        """The parameters of a layer whose gradients the replicas sum up."""
        return (4 if self.top_k else 12) * self.hidden**2


@dataclass(frozen=True)
class Layout:
    """The GPU of each part: tensor-parallel GPUs are neighbours, stages are far apart.

    rank = (stage · data + replica) · tensor + shard
    """

    tensor: int
    pipeline: int
    data: int

    @property
    def ranks(self) -> int:
        return self.tensor * self.pipeline * self.data


@dataclass(frozen=True)
class Volumes:
    """The bytes that all GPUs together send in a step, by purpose."""

    tensor: int
    pipeline: int
    data: int
    expert: int

    @property
    def by_purpose(self) -> dict[str, int]:
        return asdict(self)

    @property
    def total(self) -> int:
        return sum(self.by_purpose.values())


def gradient_bytes(model: Model, layout: Layout) -> int:
    """The bytes of a layer's gradients at each GPU."""
    return model.shared_parameters * model.element_bytes // layout.tensor


def expert_bytes(model: Model, layout: Layout) -> int:
    """The bytes that each GPU has for the experts of all replicas, in a layer and micro-batch."""
    return model.top_k * model.activation_bytes // layout.tensor


def volumes_of(model: Model, layout: Layout) -> Volumes:
    """The sums of the table above. An all-reduce of S bytes over n GPUs sends 2(n - 1)·S, an
    all-to-all (n - 1)·S."""
    t, p, d = layout.tensor, layout.pipeline, layout.data
    passes = model.layers * model.micro_batches
    reduces = 2 if model.top_k else 4
    experts = 4 if model.top_k else 0
    return Volumes(
        tensor=passes * d * reduces * 2 * (t - 1) * model.activation_bytes,
        pipeline=2 * (p - 1) * model.micro_batches * d * t * model.activation_bytes,
        data=model.layers * t * 2 * (d - 1) * gradient_bytes(model, layout),
        expert=passes * t * experts * (d - 1) * expert_bytes(model, layout),
    )
