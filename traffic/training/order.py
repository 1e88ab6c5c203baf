"""The order in which a GPU takes micro-batches forward and backward: 1F1B, and interleaved 1F1B.

First a GPU takes some micro-batches forward, then one forward and one backward in turns, and at the
end the remaining ones backward (Narayanan et al., SC'21, 2.2).

    stage 1   F1 F2       B1 F3 B2 F4 B3    B4           2 stages, 4 micro-batches
    stage 2      F1 B1 F2 B2 F3 B3 F4 B4

Interleaved, a GPU of p has v virtual stages: those with the numbers s, s + p, s + 2p and so on. It
takes p micro-batches through its first virtual stage, then the same p through its second, and so
on. So the time in which GPUs wait for the pipeline to fill is v times shorter, and micro-batches
cross v times as many borders. Their number must be a multiple of p.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Way = Literal["F", "B"]
"""Forward, backward."""


@dataclass(frozen=True)
class Pass:
    """A micro-batch through a virtual stage of a GPU."""

    way: Way
    virtual: int
    batch: int


def passes(stage: int, pipeline: int, virtual: int, batches: int) -> Iterator[Pass]:
    """The passes of a GPU of this stage, in order."""
    total = virtual * batches
    ahead = min(total, _ahead(stage, pipeline, virtual))
    for number in range(ahead):
        yield _pass("F", number, pipeline, virtual)
    for number in range(total - ahead):
        yield _pass("F", number + ahead, pipeline, virtual)
        yield _pass("B", number, pipeline, virtual)
    for number in range(total - ahead, total):
        yield _pass("B", number, pipeline, virtual)


def _ahead(stage: int, pipeline: int, virtual: int) -> int:
    """The passes forward before the first pass backward."""
    behind = pipeline - stage - 1
    return behind if virtual == 1 else 2 * behind + (virtual - 1) * pipeline


def _pass(way: Way, number: int, pipeline: int, virtual: int) -> Pass:
    """The n-th pass of a GPU forward or backward."""
    turn, place = divmod(number, pipeline * virtual)
    chosen, batch = divmod(place, pipeline)
    own = chosen if way == "F" else virtual - 1 - chosen
    return Pass(way, own, turn * pipeline + batch)
