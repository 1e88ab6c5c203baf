"""A training step of a transformer.

The model's sizes determine the work and the messages; see traffic/training/training.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from emu.spec import references
from emu.spec.notes import note
from emu.spec.quantities import Integer
from emu.spec.traffic.job import JobEntry
from emu.spec.traffic.model_keys import ModelKeys
from traffic.graph import OperationGraph
from traffic.job import Step
from traffic.training.step import StepBuilder
from traffic.training.training import OVERLAPS, Layout, Purpose, Training
from traffic.training.volumes import amounts, bytes_for

TFLOPS = 1000
"""Floating-point operations in a nanosecond."""
_CAN_OVERLAP = (Purpose.TENSOR, *OVERLAPS)


def _purposes(value: object) -> object:
    """One name, a list of names, or `none`."""
    if value == "none":
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        raise ValueError(f"{value!r:.60} is not a list; write it like [pipeline, data]")
    for name in names:
        if name not in _CAN_OVERLAP:
            raise ValueError(f"{name!r:.60} is not known here; choose {', '.join(_CAN_OVERLAP)}")
    return tuple(Purpose(name) for name in _CAN_OVERLAP if name in names)


Purposes = Annotated[
    tuple[Purpose, ...],
    BeforeValidator(_purposes),
    PlainSerializer(lambda found: [one.value for one in found] or "none", when_used="json"),
    WithJsonSchema(
        {
            "type": ["string", "array"],
            "items": {"enum": [one.value for one in _CAN_OVERLAP]},
            "examples": [["pipeline", "data"], "tensor", "none"],
        }
    ),
]


class TrainingStep(ModelKeys, JobEntry):
    """One step of training: all micro-batches forward and backward, then the sum of gradients."""

    pattern: Literal["training-step"] = Field(description="Pattern of the traffic.")
    sequence: Integer = Field(
        ge=1,
        le=1_000_000,
        description="Tokens of a sequence.",
        json_schema_extra=note(unit="tokens"),
    )
    micro_batch: Integer = Field(
        default=1,
        ge=1,
        le=1024,
        description="Sequences of a micro-batch.",
        json_schema_extra=note(
            unit="sequences", why="the smallest, so that activations stay small"
        ),
    )
    micro_batches: Integer = Field(
        default=1,
        ge=1,
        le=1024,
        description="Micro-batches of each replica in a step.",
        json_schema_extra=note(
            unit="micro-batches", why="one; a pipeline needs several times the number of its stages"
        ),
    )
    tensor: Integer = Field(
        default=1,
        ge=1,
        le=64,
        description="GPUs that share a layer; consecutive ranks.",
        json_schema_extra=note(unit="GPUs", why="no tensor parallelism"),
    )
    sequence_parallel: bool = Field(
        default=False,
        description="Whether the GPUs that share a layer also share activations between layers: "
        "all-gathers and reduce-scatters take the place of all-reduces.",
        json_schema_extra=note(
            why="off by default in Megatron-LM, too", source=references.SEQUENCE_PARALLEL
        ),
    )
    context: Integer = Field(
        default=1,
        ge=1,
        le=256,
        description="GPUs that share a sequence. Keys and values go around a ring of them in every "
        "layer.",
        json_schema_extra=note(
            unit="GPUs", why="no context parallelism", source=references.RING_ATTENTION
        ),
    )
    pipeline: Integer = Field(
        default=1,
        ge=1,
        le=64,
        description="Stages that the layers are divided into. A replica has tensor times context "
        "times pipeline ranks; each replica has data of its own.",
        json_schema_extra=note(unit="stages", why="no pipeline parallelism"),
    )
    virtual_stages: Integer = Field(
        default=1,
        ge=1,
        le=64,
        description="Virtual stages of each GPU of the pipeline (interleaved 1F1B). micro_batches "
        "must be a multiple of pipeline then.",
        json_schema_extra=note(
            unit="stages", why="plain 1F1B", source=references.INTERLEAVED_PIPELINE
        ),
    )
    zero: Integer = Field(
        default=0,
        ge=0,
        le=3,
        description="Stage of ZeRO. 0: replicas all-reduce gradients. 1: they reduce-scatter "
        "gradients, and all-gather parameters after the step. 2: they reduce-scatter gradients "
        "after each micro-batch. 3: they also all-gather the parameters of a layer before each "
        "pass through it, as FSDP does.",
        json_schema_extra=note(unit="stage", why="plain data parallelism", source=references.ZERO),
    )
    prefetch: Integer = Field(
        default=1,
        ge=0,
        le=64,
        description="zero: 3: how many layers ahead of the computation parameters are gathered. 0: "
        "when they are needed.",
        json_schema_extra=note(unit="layers", why="as FSDP does in the backward pass"),
    )
    overlap: Purposes = Field(
        default=OVERLAPS,
        description="Communication that goes on while a GPU computes. tensor: gradients of "
        "weights are computed while those of inputs are summed up. context: keys and values are "
        "passed on while a GPU computes with them. pipeline: a GPU goes on while it sends to the "
        "next stage. data: gradients are reduced, and parameters gathered, beside computation.",
        json_schema_extra=note(why="what most trainings do; tensor takes a special implementation"),
    )
    element_bytes: Integer = Field(
        default=2,
        ge=1,
        le=8,
        description="Bytes of an activation, weight or gradient.",
        json_schema_extra=note(unit="bytes", why="bfloat16 or float16"),
    )
    tflops: Integer = Field(
        default=400,
        ge=1,
        le=100_000,
        description="Speed of a GPU, in 10^12 floating-point operations per second.",
        json_schema_extra=note(
            unit="TFLOP/s",
            why="40 % of an H100's specified bfloat16 rate without sparsity, 989 TFLOP/s; "
            "about what large trainings report",
            source=references.H100,
        ),
    )

    @property
    def layout(self) -> Layout:
        data = len(self.among) // (self.tensor * self.context * self.pipeline)
        return Layout(self.tensor, self.pipeline, data, self.context, self.virtual_stages)

    @property
    def training(self) -> Training:
        return Training(
            model=self.sizes,
            layout=self.layout,
            sequence=self.sequence,
            micro_batch=self.micro_batch,
            micro_batches=self.micro_batches,
            element_bytes=self.element_bytes,
            zero=self.zero,
            prefetch=self.prefetch,
            sequence_parallel=self.sequence_parallel,
            overlap=frozenset(self.overlap),
        )

    @property
    def flow_count(self) -> int:
        """At most: rings, neighbouring stages, experts, and work."""
        experts = self.layout.copies if self.sizes.top_k else 0
        return self.layout.ranks * (1 + 1 + 2 + 1 + experts + 1)

    @property
    def message_count(self) -> int:
        """At most, with work."""
        messages = sum(amount.messages for amount in amounts(self.training).values())
        each = 2 * (self.sizes.layers // self.pipeline + 2) * self.micro_batches
        return messages + self.layout.ranks * each * (4 + self.context)

    @property
    def total_bytes(self) -> int:
        return sum(bytes_for(self.training).values())

    def put_together(self, seed: int) -> OperationGraph:
        schedule = StepBuilder(self.training, self.tflops * TFLOPS).build()
        step = Step(self.name, schedule.work_alone_ns(), bytes_for(self.training))
        return schedule.graph(
            self.name, self.among, start_ns=self.start_ns, priority=self.priority, steps=(step,)
        )

    def why_hosts_do_not_fit(self) -> str | None:
        return "; ".join(self._reasons()) or None

    def _reasons(self) -> Iterator[str]:
        yield from self._why_layout_does_not_fit()
        yield from self._why_model_does_not_fit()
        yield from self._without_effect()

    def _why_layout_does_not_fit(self) -> Iterator[str]:
        replica = self.tensor * self.context * self.pipeline
        if len(self.among) % replica:
            context = f" times context {self.context}" if self.context > 1 else ""
            yield (
                f"{len(self.among)} ranks are not a whole number of replicas of tensor "
                f"{self.tensor}{context} times pipeline {self.pipeline}"
            )
        if self.virtual_stages > 1 and self.micro_batches % self.pipeline:
            yield (
                f"{self.micro_batches} micro_batches are not divided by {self.pipeline} stages, as "
                "virtual_stages requires"
            )
        if self.sequence % self.context:
            yield f"{self.sequence} tokens of a sequence are not divided by context {self.context}"

    def _why_model_does_not_fit(self) -> Iterator[str]:
        sizes, stages = self.sizes, self.pipeline * self.virtual_stages
        if sizes.layers % stages:
            yield f"{sizes.layers} layers are not divided by {stages} stages"
        if sizes.hidden % (4 * self.tensor):
            yield f"hidden size {sizes.hidden} is not divided by tensor {self.tensor} times 4"
        else:
            for key in ("heads", "kv_heads", "ffn"):
                if getattr(sizes, key) % self.tensor:
                    yield f"{key} {getattr(sizes, key)} is not divided by tensor {self.tensor}"
        copies = self.layout.copies
        if sizes.top_k and copies and sizes.experts % copies:
            yield (
                f"{sizes.experts} experts cannot be spread evenly over {copies} GPUs that hold the "
                "same part of a layer; use more tensor or pipeline parallelism, or fewer hosts"
            )

    def _without_effect(self) -> Iterator[str]:
        if self.sequence_parallel and self.tensor == 1:
            yield "sequence_parallel has no effect without tensor; give tensor, or leave it out"
        if self.virtual_stages > 1 and self.pipeline == 1:
            yield "virtual_stages has no effect without pipeline; give pipeline, or leave it out"
        if "prefetch" in self.model_fields_set and self.zero < 3:
            yield f"prefetch has no effect with zero: {self.zero}; use zero: 3, or leave it out"
