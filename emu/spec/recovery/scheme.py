"""What a loss recovery is for the rest of a spec, and the registry of all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recovery:
    """A scheme of loss recovery. The core has its rules: `emu/core/nic/recovery_*.c`."""

    name: str
    resends: str
    """What a sender sends again after a loss."""
    keeps_early_packets: bool = False
    """Whether a receiver keeps packets that overtake others. `reordering` has no effect else."""
    limits_window: bool = False
    """Whether no more packets are in flight than the path holds, unless `window` says otherwise.
    A window as tight as that needs an ACK for each packet."""


RECOVERIES: dict[str, Recovery] = {}
"""By name."""


def register(recovery: Recovery) -> None:
    RECOVERIES[recovery.name] = recovery
