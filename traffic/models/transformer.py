"""The sizes of a transformer, and what follows from them: parameters, and bytes of a KV cache.

A model has L layers of hidden size h. A layer is attention and a feed-forward network (FFN):

    attention    H query heads and G key/value heads of d elements each
                 q: h x H·d    k, v: h x G·d each    output: H·d x h
    FFN          f elements inside. Plain: h x f and f x h.  Gated (SwiGLU): h x f twice, and f x h
    experts      E FFNs side by side instead of one; each token passes k of them. A router, h x E

    parameters of attention     2·h·d·(H + G)
    parameters of one FFN       2·h·f, gated 3·h·f
    parameters of a layer       attention + FFN, or + E·FFN + h·E; and two norms of h
    embedding, output           V·h each, for a vocabulary of V; one for both if they are tied
    parameters of the model     L layers + embedding + output + a norm of h
    KV cache of a token         2·L·G·d elements

G = H is multi-head attention, G < H is grouped-query attention (GQA, Ainslie et al., 2023), and
G = 1 is multi-query attention. The gated FFN is from Shazeer, "GLU Variants Improve Transformer"
(2020).

Left out: biases, position embeddings, norms of queries and keys. They are below 0.1 % of the
parameters. Attention with compressed keys and values (MLA), experts beside the chosen ones, and
models in which only some layers have experts have other formulas, so they cannot be described.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Transformer:
    """The sizes of a model, in elements."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    """Elements of a head."""
    ffn: int
    """Elements inside the FFN; with experts, inside each of them."""
    gated: bool = True
    """Whether the FFN has a gate, as SwiGLU has."""
    vocabulary: int = 0
    """Tokens of the vocabulary; 0: embedding and output are left out."""
    tied: bool = False
    """Whether the output uses the embedding's parameters."""
    experts: int = 0
    """FFNs of a layer; 0: one, which all tokens pass."""
    top_k: int = 0
    """The experts that a token passes; 0: the model has none."""

    @property
    def attention_parameters(self) -> int:
        """Of a layer's attention."""
        return 2 * self.hidden * self.head_size * (self.heads + self.kv_heads)

    @property
    def ffn_parameters(self) -> int:
        """Of one FFN."""
        return (3 if self.gated else 2) * self.hidden * self.ffn

    @property
    def layer_parameters(self) -> int:
        """Of a layer with its router and its norms."""
        ffns = max(1, self.experts) * self.ffn_parameters + self.experts * self.hidden
        return self.attention_parameters + ffns + 2 * self.hidden

    @property
    def embedding_parameters(self) -> int:
        """Of the embedding; the output has as many."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """Of the whole model."""
        ends = (1 if self.tied else 2) * self.embedding_parameters
        return self.layers * self.layer_parameters + ends + self.hidden

    @property
    def kv_elements(self) -> int:
        """Elements that one token has in the KV cache of one layer: a key and a value."""
        return 2 * self.kv_heads * self.head_size
