"""A training step as a graph: forward and backward of all micro-batches through all stages.

`order` says in which order a GPU takes micro-batches, `blocks` what a layer computes and sends, and
`parameters` how copies of layers stay the same. Here the stages are put together: a micro-batch
that has passed a stage is sent to the next.

    stage 1  ─ layers 1-4 ─ activations ─▶  stage 2  ─ layers 5-8          forward
             ◀─ gradients ─                                                backward

If pipeline communication overlaps, a GPU goes on while it sends to a neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator

from traffic.collectives.schedule import Schedule
from traffic.training.blocks import Attention, Block, Embedding, Experts, FeedForward, Output
from traffic.training.order import Pass, passes
from traffic.training.parameters import Parameters, Unit
from traffic.training.stage import Stage, stages_of
from traffic.training.training import Purpose, Training


class StepBuilder:
    """Builds a step in an order in which every operation follows those it waits for."""

    def __init__(self, training: Training, operations_per_ns: float) -> None:
        """`operations_per_ns`: floating-point operations of a GPU in a nanosecond."""

        def work_ns(operations: int) -> int:
            return round(operations / training.layout.tensor / operations_per_ns)

        self.schedule = Schedule(buffers=False)
        self._training, self._layout = training, training.layout
        self._stages = stages_of(self.schedule, training.layout, work_ns)
        self._parameters = Parameters(training)

    def build(self) -> Schedule:
        """Advances every stage until it waits for a neighbour, again and again."""
        todo = [self._passes(number) for number in range(len(self._stages))]
        waiting = [next(own, None) for own in todo]
        while any(waiting):
            for number in range(len(self._stages)):
                while (task := waiting[number]) and self._has_come(number, task):
                    self._take(number, task)
                    waiting[number] = next(todo[number], None)
        self._parameters.after_the_step()
        return self.schedule

    def _passes(self, stage: int) -> Iterator[Pass]:
        layout = self._layout
        return passes(stage, layout.pipeline, layout.virtual, self._training.micro_batches)

    def _has_come(self, number: int, task: Pass) -> bool:
        first = 0 if task.way == "F" else self._layout.stages - 1
        is_first = self._virtual_stage(number, task) == first
        return is_first or task in self._stages[number].received

    def _virtual_stage(self, number: int, task: Pass) -> int:
        return task.virtual * self._layout.pipeline + number

    def _take(self, number: int, task: Pass) -> None:
        """Takes a micro-batch through a virtual stage, and sends it to the neighbour."""
        stage, place = self._stages[number], self._virtual_stage(number, task)
        if task in stage.received:
            stage.ready = [*stage.ready, stage.received.pop(task)]
        is_last = task.way == "B" and task.batch == self._training.micro_batches - 1
        self._parameters.through(stage, self._units(place), task.way, is_last=is_last)
        neighbour = place + (1 if task.way == "F" else -1)
        if 0 <= neighbour < self._layout.stages:
            self._send(stage, neighbour, task)

    def _send(self, stage: Stage, neighbour: int, task: Pass) -> None:
        virtual, number = divmod(neighbour, self._layout.pipeline)
        far = self._stages[number]
        sent = self.schedule.send(
            stage.ranks, far.ranks, self._training.stage_bytes, after=stage.ready
        )
        far.received[Pass(task.way, virtual, task.batch)] = sent
        if Purpose.PIPELINE not in self._training.overlap:
            stage.ready = [*stage.ready, sent]

    def _units(self, place: int) -> list[Unit]:
        """The layers of a virtual stage; the first also has the embedding, the last the output."""
        training, layout = self._training, self._layout
        layer = Unit((Attention(training), self._second_half()), training.layer_bytes)
        units = [layer] * (training.model.layers // layout.stages)
        if training.model.vocabulary and place == 0:
            units.insert(0, Unit((Embedding(training),), training.embedding_bytes))
        if training.model.vocabulary and place == layout.stages - 1:
            units.append(Unit((Output(training),), training.embedding_bytes))
        return units

    def _second_half(self) -> Block:
        return (Experts if self._training.model.top_k else FeedForward)(self._training)
