"""Training: a step of a transformer, and a layer of experts.

The model's sizes determine the work and the messages; see traffic/training/model.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, Strict

from emu.spec import references
from emu.spec.notes import note
from emu.spec.quantities import Integer, Size, Time
from emu.spec.traffic.job import JobEntry
from emu.units import PS_PER_NS, format_time_ns
from traffic.collectives.moe import draw_tokens, layer
from traffic.collectives.schedule import Schedule
from traffic.graph import LONGEST_WORK_NS, OperationGraph
from traffic.job import Step
from traffic.training.model import Layout, Model, volumes_of
from traffic.training.step import StepBuilder

TFLOPS = 1000
"""Floating-point operations in a nanosecond."""


class TrainingStep(JobEntry):
    """One step of training: all micro-batches forward and backward, then the sum of gradients."""

    pattern: Literal["training-step"] = Field(description="Pattern of the traffic.")
    layers: Integer = Field(
        ge=1,
        le=512,
        description="Layers of the transformer.",
        json_schema_extra=note(unit="layers"),
    )
    hidden: Integer = Field(
        ge=16, le=65_536, description="Its hidden size.", json_schema_extra=note(unit="elements")
    )
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
    pipeline: Integer = Field(
        default=1,
        ge=1,
        le=64,
        description="Stages that the layers are divided into. A replica has tensor times pipeline "
        "ranks; each replica has data of its own.",
        json_schema_extra=note(unit="stages", why="no pipeline parallelism"),
    )
    top_k: Integer = Field(
        default=0,
        ge=0,
        le=64,
        description="Experts that each token is sent to in every layer; 0: there are none.",
        json_schema_extra=note(unit="experts", why="a dense model"),
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
    def model(self) -> Model:
        return Model(
            layers=self.layers,
            hidden=self.hidden,
            sequence=self.sequence,
            micro_batch=self.micro_batch,
            micro_batches=self.micro_batches,
            element_bytes=self.element_bytes,
            top_k=self.top_k,
        )

    @property
    def layout(self) -> Layout:
        data = len(self.among) // (self.tensor * self.pipeline)
        return Layout(self.tensor, self.pipeline, data)

    @property
    def flow_count(self) -> int:
        """At most."""
        ranks = len(self.among)
        return ranks * (self.tensor + 2 * self.layout.data + 2)

    @property
    def message_count(self) -> int:
        """At most, with work."""
        layout, passes = self.layout, self.layers * self.micro_batches
        ring = 2 * (self.tensor - 1) + 2 * (layout.data if self.top_k else 0)
        each = passes // self.pipeline * 4 * (ring + 1) + 2 * self.micro_batches
        gradients = self.layers // self.pipeline * 2 * layout.data
        return layout.ranks * (each + gradients)

    @property
    def total_bytes(self) -> int:
        return volumes_of(self.model, self.layout).total

    def put_together(self, seed: int) -> OperationGraph:
        schedule = StepBuilder(self.model, self.layout, self.tflops * TFLOPS).build()
        volumes = volumes_of(self.model, self.layout)
        step = Step(self.name, schedule.work_alone_ns(), volumes.by_purpose)
        return schedule.graph(
            self.name, self.among, start_ns=self.start_ns, priority=self.priority, steps=(step,)
        )

    def why_hosts_do_not_fit(self) -> str | None:
        replica = self.tensor * self.pipeline
        if len(self.among) % replica:
            return (
                f"{len(self.among)} ranks are not a whole number of replicas of tensor "
                f"{self.tensor} times pipeline {self.pipeline}"
            )
        if self.layers % self.pipeline:
            return f"{self.layers} layers are not divided by {self.pipeline} stages"
        if self.hidden % (4 * self.tensor):
            return f"hidden size {self.hidden} is not divided by tensor {self.tensor} times 4"
        return None


class Experts(JobEntry):
    """A layer of experts: tokens are sent to experts, processed, and sent back."""

    pattern: Literal["moe"] = Field(description="Pattern of the traffic.")
    experts: Integer | None = Field(
        default=None,
        ge=1,
        le=65_536,
        description="Number of experts; one for each rank unless given.",
        json_schema_extra=note(unit="experts"),
    )
    tokens: Integer = Field(
        ge=1,
        le=10_000_000,
        description="Tokens that each rank has.",
        json_schema_extra=note(unit="tokens"),
    )
    top_k: Integer = Field(
        default=1,
        ge=1,
        le=64,
        description="Different experts that each token is sent to.",
        json_schema_extra=note(
            unit="experts",
            why="the number in a switch transformer",
            source=references.SWITCH_TRANSFORMER,
        ),
    )
    token_bytes: Size = Field(
        alias="token", gt=0, le=2**31, description="Bytes of a token, e.g. 8KiB."
    )
    token_time_ps: Time = Field(
        default=0,
        alias="token_time",
        description="Time that an expert computes on a token, e.g. 50ns.",
        json_schema_extra=note(why="0: computation takes no time, and you see the network alone"),
    )
    skew: Annotated[float, Strict(False)] = Field(
        default=0.0,
        ge=0,
        le=4,
        description="How unevenly experts are chosen: the i-th most popular one in proportion to "
        "1/i^skew. 0: all alike.",
        json_schema_extra=note(unit="a power", why="experts that are chosen alike"),
    )

    def why_hosts_do_not_fit(self) -> str | None:
        """The longest possible work is that of an expert to which every token is sent."""
        choices = len(self.among) * self.tokens * self.top_k
        longest_ns = choices * self.token_time_ps / PS_PER_NS
        if longest_ns <= LONGEST_WORK_NS:
            return None
        return (
            f"all tokens together are work of {format_time_ns(longest_ns)}, and an expert may have "
            f"{format_time_ns(LONGEST_WORK_NS)} at most; lower tokens or token_time"
        )

    @property
    def expert_count(self) -> int:
        return self.experts or len(self.among)

    @property
    def flow_count(self) -> int:
        """At most."""
        return 2 * self.message_count

    @property
    def message_count(self) -> int:
        """At most, with work."""
        ranks = len(self.among)
        return 2 * ranks * (ranks - 1) + ranks

    @property
    def total_bytes(self) -> int:
        """At most."""
        return 2 * len(self.among) * self.tokens * self.top_k * self.token_bytes

    def put_together(self, seed: int) -> OperationGraph:
        ranks, random = len(self.among), np.random.default_rng([seed, *self.name.encode()])
        tokens = draw_tokens(ranks, self.expert_count, self.tokens, self.top_k, self.skew, random)
        schedule = Schedule(buffers=False)
        layer(schedule, tokens, self.token_bytes, self.token_time_ps / PS_PER_NS)
        away = int(tokens.sum() - np.trace(tokens)) * self.token_bytes
        step = Step(self.name, schedule.work_alone_ns(), {"dispatch": away, "combine": away})
        return schedule.graph(
            self.name, self.among, start_ns=self.start_ns, priority=self.priority, steps=(step,)
        )
