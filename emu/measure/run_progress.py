"""The progress of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RunProgress:
    """A moment of a run. `bytes_*` count message bytes in their receivers' memory.

    Traffic that runs for a fixed time has no total in advance. Until the run is over, the total is
    an extrapolation of the progress so far.
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


def summed(parts: Sequence[RunProgress]) -> RunProgress:
    """The progress of concurrent workloads together. The first that counts events counts them for
    all."""
    return RunProgress(
        emulated_ns=max(part.emulated_ns for part in parts),
        bytes_done=sum(part.bytes_done for part in parts),
        bytes_total=sum(part.bytes_total for part in parts),
        flows_done=sum(part.flows_done for part in parts),
        flows_total=sum(part.flows_total for part in parts),
        drops=next((part.drops for part in parts if part.drops is not None), None),
        pauses=next((part.pauses for part in parts if part.pauses is not None), None),
    )
