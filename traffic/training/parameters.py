"""Parameters that several GPUs hold: how copies sum up gradients and share parameters (ZeRO).

    stage   copies share          after a backward pass        before a pass   after the step
    0       nothing               all-reduce, the last one
    1       optimizer states      reduce-scatter, the last                     all-gather
    2       and gradients         reduce-scatter, each                         all-gather
    3       and parameters        reduce-scatter, each         all-gather

Stage 3 is what FSDP calls full sharding. Source: Rajbhandari et al., "ZeRO: Memory Optimizations
Toward Training Trillion Parameter Models", SC'20, sections 5 and 7.

Gradients are reduced unit by unit (a layer, the embedding, the output), as soon as they are there.
If this communication overlaps, the GPU computes on meanwhile. Stage 3 gathers the parameters of a
unit when the computation of an earlier one begins: the `prefetch`-th before it in the same pass.
Without overlap they are gathered when they are needed. The optimizer takes no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traffic.collectives.schedule import Waits
from traffic.training.blocks import Block
from traffic.training.order import Way
from traffic.training.stage import Stage
from traffic.training.training import Purpose, Training


@dataclass(frozen=True)
class Unit:
    """Blocks whose parameters are gathered, and whose gradients are reduced, together."""

    blocks: Sequence[Block]
    parameter_bytes: int
    """At a GPU; of those parameters that have copies."""


class Parameters:
    """Takes a stage's GPUs through units, with the communication for their parameters."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self._overlaps = Purpose.DATA in training.overlap
        self._reduced: list[tuple[Stage, Unit, Waits]] = []
        """Units that are reduced for the last time in the step."""

    def through(self, stage: Stage, units: Sequence[Unit], way: Way, *, is_last: bool) -> None:
        """Takes a micro-batch through the units. `is_last`: none follows in this step."""
        ordered = units if way == "F" else units[::-1]
        gathered: list[Waits] = []
        ahead = self._training.prefetch if self._overlaps else 0
        for place, unit in enumerate(ordered):
            for wanted in ordered[len(gathered) : place + 1 + ahead]:
                gathered.append(self._gathered(stage, wanted))
            stage.ready = [*stage.ready, *gathered[place]]
            for block in unit.blocks if way == "F" else unit.blocks[::-1]:
                (block.forward if way == "F" else block.backward)(stage)
            if way == "B":
                self._reduce(stage, unit, is_last=is_last)

    def after_the_step(self) -> None:
        """The copies get all parameters back."""
        if self._training.zero in (1, 2):
            for stage, unit, reduced in self._reduced:
                waits = [*stage.ready, *reduced]
                stage.all_gather(stage.groups.copies, unit.parameter_bytes, waits)

    def _gathered(self, stage: Stage, unit: Unit) -> Waits:
        if self._training.zero < 3:
            return ()
        return stage.all_gather(stage.groups.copies, unit.parameter_bytes, stage.ready)

    def _reduce(self, stage: Stage, unit: Unit, *, is_last: bool) -> None:
        if not is_last and self._training.zero < 2:
            return
        reduce = stage.reduce_scatter if self._training.zero else stage.all_reduce
        reduced = reduce(stage.groups.copies, unit.parameter_bytes, stage.ready)
        if is_last:
            self._reduced.append((stage, unit, reduced))
        if not self._overlaps:
            stage.ready = [*stage.ready, *reduced]
