"""The sizes of a language model in a spec: by a published name, key by key, or both.

model: llama-3-70b                         all sizes of the table of published models
model: llama-3-70b, layers: 8              the same with fewer layers
layers: 8, hidden: 1024                    any other: multi-head attention, an FFN of 4 times
                                           the hidden size without a gate, no vocabulary
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from emu.spec import references
from emu.spec.base import Model
from emu.spec.diagnostic import did_you_mean
from emu.spec.notes import note
from emu.spec.quantities import Integer
from traffic.models.published import published
from traffic.models.transformer import Transformer

_LARGEST = 1_000_000


def _known(name: str) -> str:
    if name not in published():
        known = did_you_mean(name, published()) or f"; choose one of {', '.join(published())}"
        raise ValueError(f"{name!r:.60} is not a model that is known here{known}")
    return name


ModelName = Annotated[
    str,
    AfterValidator(_known),
    WithJsonSchema({"type": "string", "enum": list(published())}),
]


class AttentionKeys(Model):
    """The layers of a model, and their attention."""

    model: ModelName | None = Field(
        default=None,
        description="A well-known open model, with the sizes that its publisher states. Further "
        "keys change single sizes.",
        json_schema_extra=note(source=references.MODELS),
    )
    layers: Integer | None = Field(
        default=None,
        ge=1,
        le=512,
        description="Layers of the transformer; those of `model` unless given.",
        json_schema_extra=note(unit="layers"),
    )
    hidden: Integer | None = Field(
        default=None,
        ge=16,
        le=65_536,
        description="Its hidden size; that of `model` unless given.",
        json_schema_extra=note(unit="elements"),
    )
    heads: Integer | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Query heads of attention. Unless given here or by `model`, they are together "
        "as wide as the hidden size.",
        json_schema_extra=note(unit="heads"),
    )
    kv_heads: Integer | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Heads of keys and values. Fewer than `heads`: grouped-query attention. Unless "
        "given here or by `model`, as many as `heads`.",
        json_schema_extra=note(unit="heads", source=references.GQA),
    )
    head_size: Integer | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Elements of a head. Unless given here or by `model`, the hidden size divided "
        "by `heads`.",
        json_schema_extra=note(unit="elements"),
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        missing = [key for key in ("layers", "hidden") if getattr(self, key) is None]
        if self.model is None and missing:
            raise ValueError(
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing; give "
                f"{'it' if len(missing) == 1 else 'them'}, or a model, e.g. model: llama-3-70b"
            )
        if self.kv_heads is not None and self.model is None and self.heads is None:
            raise ValueError("kv_heads needs heads, of which it is a part; give heads, too")
        if self.sizes.heads % self.sizes.kv_heads:
            raise ValueError(
                f"{self.sizes.heads} heads are not divided by {self.sizes.kv_heads} kv_heads; "
                "query heads share keys and values in groups of equal size"
            )
        return self

    @property
    def sizes(self) -> Transformer:
        """The model's sizes."""
        return _sizes_of(self)


class ModelKeys(AttentionKeys):
    """All sizes of a model."""

    ffn: Integer | None = Field(
        default=None,
        ge=1,
        le=_LARGEST,
        description="Inner size of the feed-forward network; with experts, of each expert. Unless "
        "given here or by `model`, four times the hidden size.",
        json_schema_extra=note(unit="elements"),
    )
    gated: bool | None = Field(
        default=None,
        description="Whether the feed-forward network has a gate (SwiGLU), so three matrices "
        "instead of two. Unless given here or by `model`, it has none.",
        json_schema_extra=note(source=references.GLU),
    )
    vocabulary: Integer | None = Field(
        default=None,
        ge=0,
        le=_LARGEST,
        description="Tokens of the vocabulary: the embedding in the first stage and the output in "
        "the last. 0, or neither given here nor by `model`: both are left out.",
        json_schema_extra=note(unit="tokens"),
    )
    experts: Integer | None = Field(
        default=None,
        ge=0,
        le=65_536,
        description="Experts of a layer, spread over the GPUs that hold the same part of a layer. "
        "Unless given here or by `model`, as many as there are such GPUs, if `top_k` is given.",
        json_schema_extra=note(unit="experts"),
    )
    top_k: Integer | None = Field(
        default=None,
        ge=0,
        le=64,
        description="Experts that each token is sent to in every layer. 0, or neither given here "
        "nor by `model`: a dense model.",
        json_schema_extra=note(unit="experts"),
    )

    @model_validator(mode="after")
    def _experts_are_enough(self) -> Self:
        if self.sizes.experts and self.sizes.top_k > self.sizes.experts:
            raise ValueError(
                f"each token is sent to {self.sizes.top_k} experts, and there are "
                f"{self.sizes.experts}; lower top_k, or raise experts"
            )
        return self


def _sizes_of(keys: AttentionKeys) -> Transformer:
    """The published sizes with the given ones in their place, or the given ones with defaults."""
    named = {field.name: getattr(keys, field.name, None) for field in fields(Transformer)}
    given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if keys.model is not None:
        sizes = published()[keys.model].sizes
        return Transformer(**(vars(sizes) | given))
    return Transformer(**(_defaults(given) | given))


def _defaults(given: dict[str, Any]) -> dict[str, Any]:
    """Multi-head attention as wide as the hidden size. Where nothing says how many heads there are,
    each has one element: only their width together counts then."""
    hidden = given["hidden"]
    heads = given.get("heads") or max(1, hidden // given.get("head_size", 1))
    return {
        "heads": heads,
        "kv_heads": heads,
        "head_size": max(1, hidden // heads),
        "ffn": 4 * hidden,
        "gated": False,
    }
