"""How far a run is, for whoever waits for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """A moment of a run. `bytes_*` count message bytes in their receivers' memory."""

    emulated_ns: int
    bytes_done: int
    bytes_total: int
    flows_done: int
    flows_total: int
    drops: int | None = None
    """Packets dropped so far; None where that is only counted at the end."""
    pauses: int | None = None
    """Pause frames sent so far; None likewise."""
