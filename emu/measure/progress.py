"""How far a run is, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """A moment of a run. `bytes_*` count message bytes in their receivers' memory.

    What is done for a duration has no total beforehand: until the run is over, it is what will
    have been done if it goes on as it did.
    """

    emulated_ns: int
    bytes_done: int
    bytes_total: int
    flows_done: int
    flows_total: int
    drops: int | None = None
    """Packets dropped so far; None where that is only counted at the end."""
    pauses: int | None = None
    """Pause frames sent so far; None likewise."""


def summed(parts: Sequence[Progress]) -> Progress:
    """Of workloads side by side, as one. Events are told by the first that counts them."""
    return Progress(
        emulated_ns=max(part.emulated_ns for part in parts),
        bytes_done=sum(part.bytes_done for part in parts),
        bytes_total=sum(part.bytes_total for part in parts),
        flows_done=sum(part.flows_done for part in parts),
        flows_total=sum(part.flows_total for part in parts),
        drops=next((part.drops for part in parts if part.drops is not None), None),
        pauses=next((part.pauses for part in parts if part.pauses is not None), None),
    )
