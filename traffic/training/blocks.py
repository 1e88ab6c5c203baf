"""The blocks of a transformer: attention, FFN, embedding and output, forward and backward.

Tensor-parallel GPUs share a block. Each has the whole input, computes its share, and the shares are
summed up (Shoeybi et al., 2019, section 3). Backward, the gradients of the input are summed up:

                  before a block                  after it
    forward                                       all-reduce
    backward      all-reduce (of gradients)
    with sequence parallelism (Korthikanti et al., 2022, section 4.2):
    forward       all-gather                      reduce-scatter
    backward      reduce-scatter                  all-gather; and an all-gather of the input again

An embedding has only what is after a block, an output only what is before. Between experts, tokens
are exchanged instead. Backward is read from right to left.

If tensor-parallel communication overlaps, a GPU computes the gradients of weights while those of
the input are summed up, and computes the latter while the input is gathered again. Gradients of
weights take as many operations as the forward pass.

With context parallelism, attention goes around a ring (Liu et al., 2023). In each of c rounds a GPU
computes with the keys and values at hand, and passes them on to the next GPU. If this overlaps, the
GPU passes them on while it computes. Backward, the gradients of keys and values follow them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from traffic.collectives.schedule import Waits
from traffic.training.stage import Stage
from traffic.training.training import BACKWARD, FORWARD, Purpose, Training


@dataclass(frozen=True)
class Block(ABC):
    """A block, and the training that it belongs to."""

    training: Training
    has_before: ClassVar[bool] = True
    """Whether tensor-parallel GPUs communicate before the block."""
    has_after: ClassVar[bool] = True

    @abstractmethod
    def compute_forward(self, stage: Stage) -> None:
        """All computation of the forward pass."""

    @abstractmethod
    def compute_backward(self, stage: Stage, also_operations: int) -> None:
        """The computation of the input's gradients, with some operations more at its end."""

    @property
    @abstractmethod
    def weight_operations(self) -> int:
        """The operations for the gradients of weights."""

    def forward(self, stage: Stage) -> None:
        if self.has_before and self.training.sequence_parallel:
            stage.ready = self._gathered(stage)
        self.compute_forward(stage)
        if self.has_after:
            stage.ready = self._summed_up(stage)

    def backward(self, stage: Stage) -> None:
        if self.has_after and self.training.sequence_parallel:
            stage.ready = self._gathered(stage)
        again = self._input_again(stage)
        if not self.has_before or Purpose.TENSOR not in self.training.overlap:
            stage.ready = [*stage.ready, *again]
            self.compute_backward(stage, self.weight_operations)
            stage.ready = self._summed_up(stage) if self.has_before else stage.ready
        else:
            self.compute_backward(stage, 0)
            summed_up = self._summed_up(stage)
            stage.compute(self.weight_operations, also=again)
            stage.ready = [*stage.ready, *summed_up]

    def _input_again(self, stage: Stage) -> Waits:
        again = self.has_before and self.training.sequence_parallel
        return self._gathered(stage) if again else ()

    def _gathered(self, stage: Stage) -> Waits:
        size_bytes = self.training.activation_bytes
        return stage.all_gather(stage.groups.shards, size_bytes, stage.ready)

    def _summed_up(self, stage: Stage) -> Waits:
        shared = self.training.sequence_parallel
        add = stage.reduce_scatter if shared else stage.all_reduce
        return add(stage.groups.shards, self.training.activation_bytes, stage.ready)


class FeedForward(Block):
    """An FFN that all tokens pass."""

    def compute_forward(self, stage: Stage) -> None:
        stage.compute(self.training.ffn_operations)

    def compute_backward(self, stage: Stage, also_operations: int) -> None:
        stage.compute(self.training.ffn_operations + also_operations)

    @property
    def weight_operations(self) -> int:
        return self.training.ffn_operations


class Experts(Block):
    """Experts at all copies: tokens are sent to them, and come back."""

    has_before = has_after = False

    def compute_forward(self, stage: Stage) -> None:
        self._at_experts(stage, FORWARD * self.training.ffn_operations)

    def compute_backward(self, stage: Stage, also_operations: int) -> None:
        self._at_experts(stage, self.training.ffn_operations + also_operations)

    @property
    def weight_operations(self) -> int:
        return self.training.ffn_operations

    def _at_experts(self, stage: Stage, operations: int) -> None:
        self._exchange(stage)
        stage.compute(operations)
        self._exchange(stage)

    def _exchange(self, stage: Stage) -> None:
        copies, size_bytes = stage.groups.copies, self.training.expert_bytes
        stage.ready = stage.all_to_all(copies, size_bytes, stage.ready)


class Embedding(Block):
    """The embedding: a look-up, which takes no operations."""

    has_before = False
    weight_operations = 0

    def compute_forward(self, stage: Stage) -> None:
        pass

    def compute_backward(self, stage: Stage, also_operations: int) -> None:
        pass


class Output(Block):
    """The output: a score for each token of the vocabulary."""

    has_after = False

    def compute_forward(self, stage: Stage) -> None:
        stage.compute(self.training.output_operations)

    def compute_backward(self, stage: Stage, also_operations: int) -> None:
        stage.compute(self.training.output_operations + also_operations)

    @property
    def weight_operations(self) -> int:
        return self.training.output_operations


class Attention(Block):
    """Attention: projections, and scores between tokens."""

    def compute_forward(self, stage: Stage) -> None:
        training = self.training
        if training.layout.context == 1:
            stage.compute(training.projection_operations + training.score_operations)
            return
        stage.compute(training.projection_operations - self._out_operations)
        self._ring(stage, training.score_operations)
        stage.compute(self._out_operations)

    def compute_backward(self, stage: Stage, also_operations: int) -> None:
        training = self.training
        if training.layout.context == 1:
            scores = BACKWARD * training.score_operations
            stage.compute(training.projection_operations + scores + also_operations)
            return
        stage.compute(self._out_operations)
        self._ring_back(stage, BACKWARD * training.score_operations)
        stage.compute(training.projection_operations - self._out_operations + also_operations)

    @property
    def weight_operations(self) -> int:
        return self.training.projection_operations

    @property
    def _out_operations(self) -> int:
        """Of the projection after the scores."""
        model = self.training.model
        return 2 * self.training.tokens * model.heads * model.head_size * model.hidden

    def _ring(self, stage: Stage, operations: int) -> None:
        """Keys and values pass all other GPUs."""
        rounds = self.training.layout.context
        held: Waits = stage.ready
        for number in range(rounds):
            more = number < rounds - 1
            passed = self._passed_on(stage, held) if more and self._overlaps else None
            stage.compute(operations // rounds, also=held)
            if more:
                held = passed or self._passed_on(stage, [*stage.ready, *held])

    def _ring_back(self, stage: Stage, operations: int) -> None:
        """The same; their gradients follow them, and come home after the last GPU."""
        rounds = self.training.layout.context
        held: Waits = stage.ready
        gradients: Waits = ()
        for number in range(rounds):
            more = number < rounds - 1
            passed = self._passed_on(stage, held) if more and self._overlaps else None
            stage.compute(operations // rounds, also=held)
            gradients = self._passed_on(stage, [*stage.ready, *gradients])
            if not self._overlaps:
                stage.ready = [*stage.ready, *gradients]
            if more:
                held = passed or self._passed_on(stage, [*stage.ready, *held])
        stage.ready = [*stage.ready, *gradients]

    @property
    def _overlaps(self) -> bool:
        return Purpose.CONTEXT in self.training.overlap

    def _passed_on(self, stage: Stage, after: Waits) -> Waits:
        return [stage.to_next(stage.groups.parts, self.training.kv_bytes, after)]
