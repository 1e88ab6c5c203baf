"""Arithmetic of a transformer trained on many GPUs: what each GPU computes and has to send.

A micro-batch has b sequences of s tokens, and a step has m micro-batches. h is the model's hidden
size; an element has e bytes. Five dimensions share the work:

    t  tensor     GPUs share each layer: its heads and its FFN are cut into t parts
    c  context    GPUs share each sequence: s / c tokens each
    p  pipeline   stages of layers follow each other; v virtual stages on each GPU (interleaved)
    d  data       replicas work on different sequences
    k  experts    experts are spread over the c·d GPUs that hold the same part of a layer

    what                      bytes of a GPU
    activations A             b·(s / c)·h·e
    keys and values           b·(s / c)·2·G·(head size)·e / t        G: key/value heads
    parameters of a layer     (attention + FFN)·e / t                without an FFN if it is experts
    embedding, output         V·h·e / t each
    tokens for k experts      k·A / t

    floating-point operations of the forward pass; the backward pass takes twice as many
    projections of attention  2·b·(s / c)·(parameters of attention) / t
    scores of attention       4·b·(s / c)·s·H·(head size) / t
    FFN                       2·b·(s / c)·(parameters of the FFN) / t, k times with experts
    output                    2·b·(s / c)·V·h / t

`traffic.models.transformer` has the parameters. Norms are left out, which are replicated and small.
Sources: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM", SC'21, sections 2 and 3.2 and its appendix; Shoeybi et al., "Megatron-LM" (2019),
section 3. Attention masks are not used to save operations, as in those formulas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from traffic.models.transformer import Transformer

FORWARD, BACKWARD = 1, 2
"""The operations of each pass, in multiples of the forward pass."""


class Purpose(StrEnum):
    """What communication is for."""

    TENSOR = "tensor"
    CONTEXT = "context"
    PIPELINE = "pipeline"
    DATA = "data"
    EXPERT = "expert"


OVERLAPS = (Purpose.CONTEXT, Purpose.PIPELINE, Purpose.DATA)
"""The communication that goes on while a GPU computes, in most trainings."""


@dataclass(frozen=True)
class Layout:
    """The GPU of each part: tensor-parallel GPUs are neighbours, stages are far apart.

    rank = ((stage · data + replica) · context + part) · tensor + shard
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    virtual: int = 1
    """The virtual stages of each GPU; 1: stages are not interleaved."""

    @property
    def ranks(self) -> int:
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def copies(self) -> int:
        """The GPUs that hold the same part of a layer."""
        return self.data * self.context

    @property
    def stages(self) -> int:
        """Those of all GPUs, virtual ones too."""
        return self.pipeline * self.virtual


@dataclass(frozen=True)
class Training:
    """A model, how it is shared among GPUs, and the size of a step."""

    model: Transformer
    layout: Layout
    sequence: int
    """Tokens of a sequence."""
    micro_batch: int = 1
    micro_batches: int = 1
    element_bytes: int = 2
    zero: int = 0
    """The stage of ZeRO: what the copies share of optimizer states (1), gradients (2) and
    parameters (3); 0: nothing."""
    prefetch: int = 1
    """ZeRO 3: how many layers ahead of the computation parameters are gathered."""
    sequence_parallel: bool = False
    """Whether tensor-parallel GPUs share activations between layers, too."""
    overlap: frozenset[Purpose] = field(default=frozenset(OVERLAPS))
    """The communication that goes on while a GPU computes."""

    @property
    def tokens(self) -> int:
        """The tokens of a micro-batch that a GPU works on."""
        return self.micro_batch * self.sequence // self.layout.context

    @property
    def activation_bytes(self) -> int:
        return self.tokens * self.model.hidden * self.element_bytes

    @property
    def kv_bytes(self) -> int:
        """Keys and values of a layer's tokens at a GPU."""
        return self.tokens * self.model.kv_elements * self.element_bytes // self.layout.tensor

    @property
    def expert_bytes(self) -> int:
        """What a GPU has for the experts of all copies, in a layer and micro-batch."""
        return self.model.top_k * self.activation_bytes // self.layout.tensor

    @property
    def stage_bytes(self) -> int:
        """What a GPU sends to the next stage in a micro-batch."""
        return self.activation_bytes // (self.layout.tensor if self.sequence_parallel else 1)

    @property
    def layer_bytes(self) -> int:
        """Parameters of a layer at a GPU of which there are copies; gradients are as large."""
        ffn = 0 if self.model.top_k else self.model.ffn_parameters
        parameters = self.model.attention_parameters + ffn
        return parameters * self.element_bytes // self.layout.tensor

    @property
    def embedding_bytes(self) -> int:
        """The same of the embedding, and of the output."""
        return self.model.embedding_parameters * self.element_bytes // self.layout.tensor

    @property
    def projection_operations(self) -> int:
        """Floating-point operations forward, of all tensor-parallel GPUs together; also below."""
        return 2 * self.tokens * self.model.attention_parameters

    @property
    def score_operations(self) -> int:
        width = self.model.heads * self.model.head_size
        return 4 * self.tokens * self.sequence * width

    @property
    def ffn_operations(self) -> int:
        return 2 * self.tokens * self.model.ffn_parameters * max(1, self.model.top_k)

    @property
    def output_operations(self) -> int:
        return 2 * self.tokens * self.model.embedding_parameters
