"""A training step as a graph: forward and backward of all micro-batches through all stages.

A GPU computes one pass after another, in the order of the 1F1B schedule (Narayanan et al.,
SC'21, 2.2). First it computes as many micro-batches forward as there are stages after its own. Then
it computes one forward and one backward in turns, and at the end the remaining ones backward.

    stage 1   F1 F2       B1 F3 B2 F4 B3    B4           2 stages, 4 micro-batches
    stage 2      F1 B1 F2 B2 F3 B3 F4 B4

Within a layer, each part waits for the one before: first half, all-reduce among the
tensor-parallel GPUs, second half, all-reduce (or, with experts, out to the experts before it
and back after it). Only gradients are summed up in parallel: a layer's all-reduce among
replicas begins after the last micro-batch's backward pass through it, while the previous layer
computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from traffic.collectives import exchange, ring
from traffic.collectives.schedule import Schedule, Waits, in_groups
from traffic.graph import Column
from traffic.job import pieces_of
from traffic.training.model import (
    BACKWARD,
    FORWARD,
    Layout,
    Model,
    expert_bytes,
    gradient_bytes,
)


@dataclass
class _Stage:
    """A stage of the pipeline during construction: all its GPUs, replica by replica."""

    ranks: Column
    todo: Iterator[tuple[str, int]]
    """`F` or `B` (forward, backward), and the micro-batch."""
    ready: Waits = ()
    """The operations that its GPUs wait for before they continue."""
    sent: dict[tuple[str, int], Column] = field(default_factory=dict)
    """Activations and gradients received from a neighbour."""


class StepBuilder:
    """Builds a step in an order in which every operation follows those it waits for."""

    def __init__(self, model: Model, layout: Layout, operations_per_ns: float) -> None:
        """`operations_per_ns`: floating-point operations of a GPU in a nanosecond."""
        self.schedule = Schedule(buffers=False)
        self._model, self._layout, self._speed = model, layout, operations_per_ns
        here = np.arange(layout.ranks).reshape(layout.pipeline, -1)
        self._stages = [
            _Stage(ranks, _one_f_one_b(stage, layout.pipeline, model.micro_batches))
            for stage, ranks in enumerate(here)
        ]
        places = np.arange(here.shape[1]).reshape(layout.data, layout.tensor)
        self._shards, self._replicas = places, places.T

    def build(self) -> Schedule:
        """Advances every stage until it waits for a neighbour, again and again."""
        waiting = [next(stage.todo, None) for stage in self._stages]
        while any(waiting):
            for number, stage in enumerate(self._stages):
                while (task := waiting[number]) and self._has_come(number, *task):
                    self._pass(number, *task)
                    waiting[number] = next(stage.todo, None)
        return self.schedule

    def _has_come(self, number: int, way: str, batch: int) -> bool:
        first = number == (0 if way == "F" else self._layout.pipeline - 1)
        return first or (way, batch) in self._stages[number].sent

    def _pass(self, number: int, way: str, batch: int) -> None:
        """Takes a micro-batch through the layers of a stage and sends it to the neighbour."""
        stage, model = self._stages[number], self._model
        if (way, batch) in stage.sent:
            stage.ready = [*stage.ready, stage.sent.pop((way, batch))]
        is_last = way == "B" and batch == model.micro_batches - 1
        for _ in range(model.layers // self._layout.pipeline):
            for half in (self._attention, self._rest)[:: 1 if way == "F" else -1]:
                half(stage, FORWARD if way == "F" else BACKWARD)
            if is_last:
                self._sum_gradients(stage)
        neighbour = number + (1 if way == "F" else -1)
        if 0 <= neighbour < self._layout.pipeline:
            far = self._stages[neighbour]
            far.sent[way, batch] = self.schedule.send(
                stage.ranks, far.ranks, model.activation_bytes, after=stage.ready
            )

    def _attention(self, stage: _Stage, times: int) -> None:
        self._compute(stage, times * self._model.attention_operations)
        self._sum_activations(stage)

    def _rest(self, stage: _Stage, times: int) -> None:
        if self._model.top_k:
            self._to_experts(stage)
        self._compute(stage, times * self._model.rest_operations)
        if self._model.top_k:
            self._to_experts(stage)
        else:
            self._sum_activations(stage)

    def _compute(self, stage: _Stage, operations: int) -> None:
        lasts_ns = round(operations / self._layout.tensor / self._speed)
        stage.ready = [self.schedule.work(stage.ranks, lasts_ns, stage.ready)]

    def _sum_activations(self, stage: _Stage) -> None:
        stage.ready = self._all_reduce(stage, self._shards, self._model.activation_bytes)

    def _sum_gradients(self, stage: _Stage) -> None:
        size_bytes = gradient_bytes(self._model, self._layout)
        self._all_reduce(stage, self._replicas, size_bytes)

    def _all_reduce(self, stage: _Stage, groups: Column, size_bytes: int) -> Waits:
        pieces = pieces_of(0, size_bytes, groups.shape[1])

        def collective(waits: Waits) -> Waits:
            return ring.all_reduce_pieces(self.schedule, stage.ranks[groups], pieces, waits)

        return in_groups(groups, collective, stage.ready)

    def _to_experts(self, stage: _Stage) -> None:
        size_bytes = expert_bytes(self._model, self._layout)
        pieces = pieces_of(0, size_bytes, self._layout.data)

        def collective(waits: Waits) -> Waits:
            ranks = stage.ranks[self._replicas]
            return exchange.all_to_all(self.schedule, ranks, pieces, pieces, waits)

        stage.ready = in_groups(self._replicas, collective, stage.ready)


def _one_f_one_b(stage: int, stages: int, batches: int) -> Iterator[tuple[str, int]]:
    """The passes of a stage in order: `F` or `B`, and the micro-batch."""
    ahead = min(stages - stage - 1, batches)
    yield from (("F", batch) for batch in range(ahead))
    for batch in range(batches - ahead):
        yield "F", batch + ahead
        yield "B", batch
    yield from (("B", batch) for batch in range(batches - ahead, batches))
