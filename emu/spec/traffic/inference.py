"""Inference: prefill hosts, decode hosts, and the KV caches between them.

traffic/inference.py describes how a prompt is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, Strict, WithJsonSchema

from emu.spec.notes import note
from emu.spec.quantities import Hosts, Integer, Time
from emu.spec.traffic.entry import FromTo, random_of
from emu.spec.traffic.job import GraphEntry
from emu.spec.traffic.model_keys import AttentionKeys
from emu.units import PS_PER_NS
from traffic.graph import OperationGraph
from traffic.inference import Serving, draw_prompts, inference

LONGEST_PROMPT = 10_000_000


def _lengths(value: object) -> object:
    """One length, or a list of them."""
    lengths = value if isinstance(value, list | tuple) else [value]
    for length in lengths:
        if type(length) is not int or not 1 <= length <= LONGEST_PROMPT:
            raise ValueError(
                f"{length!r:.60} is not a number of tokens from 1 to {LONGEST_PROMPT}; write it "
                "like 4096, or [512, 4096]"
            )
    if not lengths:
        raise ValueError("names no length; write it like 4096, or [512, 4096]")
    return tuple(lengths)


Lengths = Annotated[
    tuple[int, ...],
    BeforeValidator(_lengths),
    WithJsonSchema(
        {
            "type": ["integer", "array"],
            "items": {"type": "integer"},
            "examples": [4096, [512, 2048, 8192]],
            **note(unit="tokens"),
        }
    ),
]


class Inference(AttentionKeys, GraphEntry, FromTo):
    """Prompts are computed on the hosts in `from`, and answered by the hosts in `to`."""

    pattern: Literal["inference"] = Field(description="Pattern of the traffic.")
    sources: Hosts = Field(alias="from", description="Prefill hosts, e.g. h1-h4.")
    to: Hosts = Field(description="Decode hosts, e.g. h5-h8.")
    prompts: Integer = Field(
        default=100,
        ge=1,
        le=1_000_000,
        description="Prompts that arrive in all.",
        json_schema_extra=note(
            unit="prompts", why="enough for a median; percentiles of tails need thousands"
        ),
    )
    arrivals: Annotated[float, Strict(False)] = Field(
        gt=0,
        le=1_000_000_000,
        description="Prompts that arrive in a second, on average, at all prefill hosts together "
        "(Poisson, drawn by the seed). Prefill hosts take turns.",
        json_schema_extra=note(unit="prompts per second"),
    )
    tokens: Lengths = Field(
        description="Tokens of a prompt. Of several lengths each prompt has a random one; a length "
        "that is listed twice is twice as likely."
    )
    transfer: Literal["layer-wise", "whole"] = Field(
        default="layer-wise",
        description="layer-wise: the keys and values of a layer are sent as soon as they are "
        "computed. whole: all of them, when the prefill is over.",
        json_schema_extra=note(why="hides most of the transfer behind computation"),
    )
    token_time_ps: Time = Field(
        default=0,
        alias="token_time",
        description="Time of prefill for each token of a prompt, e.g. 50us.",
        json_schema_extra=note(why="0: computation takes no time, and you see the network alone"),
    )
    first_token_ps: Time = Field(
        default=0,
        alias="first_token",
        description="Time that a decode host takes for the first token, once the KV cache is "
        "there, e.g. 20ms.",
        json_schema_extra=note(why="0: computation takes no time, and you see the network alone"),
    )
    element_bytes: Integer = Field(
        default=2,
        ge=1,
        le=8,
        description="Bytes of an element of the KV cache.",
        json_schema_extra=note(unit="bytes", why="bfloat16 or float16; 1: FP8"),
    )

    @property
    def serving(self) -> Serving:
        return Serving(
            layers=self.sizes.layers,
            layer_bytes_of_token=self.sizes.kv_elements * self.element_bytes,
            token_ns=self.token_time_ps / PS_PER_NS,
            first_token_ns=round(self.first_token_ps / PS_PER_NS),
            layer_wise=self.transfer == "layer-wise",
        )

    @property
    def flow_count(self) -> int:
        """At most, with the work of each host."""
        prefill, decode = len(self.sources), len(self.to)
        return min(prefill * decode, self.prompts) + prefill + decode

    @property
    def message_count(self) -> int:
        """With work."""
        parts = self.sizes.layers if self.serving.layer_wise else 1
        return self.prompts * (self.sizes.layers + parts + 3)

    @property
    def total_bytes(self) -> int:
        """The expected number of bytes; the sum of the drawn lengths differs."""
        each = self.sizes.layers * self.serving.layer_bytes_of_token
        return round(self.prompts * mean(self.tokens) * each)

    def why_hosts_do_not_fit(self) -> str | None:
        both: Sequence[str] = [host for host in self.sources if host in self.to]
        if both:
            return f"{both[0]} is in from and in to; a host is for prefill or for decode"
        return None

    def put_together(self, seed: int) -> OperationGraph:
        random = random_of(self, seed)
        return inference(
            self.name,
            self.sources,
            self.to,
            draw_prompts(self.prompts, self.arrivals, self.tokens, random),
            self.serving,
            start_ns=self.start_ns,
            priority=self.priority,
        )
