"""The GPUs of a pipeline stage while a step is built: what they compute, and among whom they talk.

`ready` is what the GPUs wait for before they continue. Computation always joins it, so that a GPU
computes one thing after another. Communication joins it when a later computation needs its result,
and until then goes on beside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from traffic.collectives import exchange, ring
from traffic.collectives.schedule import Schedule, Waits, in_groups
from traffic.graph import Column
from traffic.job import pieces_of
from traffic.training.order import Pass
from traffic.training.training import Layout

_Around = Callable[..., Waits]


@dataclass(frozen=True)
class Groups:
    """Groups of a stage's GPUs, by their places in the stage; a row for each group."""

    shards: Column
    """GPUs that share layers."""
    parts: Column
    """GPUs that share sequences."""
    copies: Column
    """GPUs that hold the same part of a layer."""


def groups_of(layout: Layout) -> Groups:
    """The groups of each stage, which are alike."""
    places = np.arange(layout.copies * layout.tensor)
    grid = places.reshape(layout.data, layout.context, layout.tensor)
    return Groups(
        shards=places.reshape(-1, layout.tensor),
        parts=grid.transpose(0, 2, 1).reshape(-1, layout.context),
        copies=places.reshape(-1, layout.tensor).T,
    )


@dataclass
class Stage:
    """All GPUs of a stage."""

    schedule: Schedule
    ranks: Column
    groups: Groups
    work_ns: Callable[[int], int]
    """The time for operations that the tensor-parallel GPUs share."""
    ready: Waits = ()
    received: dict[Pass, Column] = field(default_factory=dict)
    """Activations and gradients from neighbours, by the pass that needs them."""

    def compute(self, operations: int, also: Waits = ()) -> None:
        """Computes when the GPUs are ready, and when `also` is over."""
        work = self.schedule.work(self.ranks, self.work_ns(operations), [*self.ready, *also])
        self.ready = [work]

    def all_reduce(self, groups: Column, size_bytes: int, after: Waits) -> Waits:
        return self._around(ring.all_reduce_pieces, groups, size_bytes, after)

    def all_gather(self, groups: Column, size_bytes: int, after: Waits) -> Waits:
        return self._around(ring.all_gather, groups, size_bytes, after)

    def reduce_scatter(self, groups: Column, size_bytes: int, after: Waits) -> Waits:
        return self._around(ring.reduce_scatter, groups, size_bytes, after)

    def all_to_all(self, groups: Column, size_bytes: int, after: Waits) -> Waits:
        def direct(schedule: Schedule, ranks: Column, pieces: ring.Pieces, waits: Waits) -> Waits:
            return exchange.all_to_all(schedule, ranks, pieces, pieces, waits)

        return self._around(direct, groups, size_bytes, after)

    def to_next(self, groups: Column, size_bytes: int, after: Waits) -> Column:
        """Each GPU sends to the next of its group. Returns what each GPU gets."""

        def send(waits: Waits) -> Waits:
            ranks = self.ranks[groups]
            after_rows = [np.asarray(wait) for wait in waits]
            sent = self.schedule.send(
                ranks, np.roll(ranks, -1, axis=-1), size_bytes, after=after_rows
            )
            return [np.roll(sent, 1, axis=-1)]

        (got,) = in_groups(groups, send, after)
        return got

    def _around(self, algorithm: _Around, groups: Column, size_bytes: int, after: Waits) -> Waits:
        pieces = pieces_of(0, size_bytes, groups.shape[1])

        def collective(waits: Waits) -> Waits:
            return algorithm(self.schedule, self.ranks[groups], pieces, waits)

        return in_groups(groups, collective, after)


def stages_of(schedule: Schedule, layout: Layout, work_ns: Callable[[int], int]) -> Sequence[Stage]:
    """The stages of all GPUs, without virtual ones."""
    of_stage = np.arange(layout.ranks).reshape(layout.pipeline, -1)
    groups = groups_of(layout)
    return [Stage(schedule, ranks, groups, work_ns) for ranks in of_stage]
