"""The scheme of loss recovery in a spec, and the registry of all schemes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recovery:
    """A scheme of loss recovery. The core has its rules: `emu/core/nic/recovery_*.c`."""

    name: str
    resends: str
    """The packets that a sender retransmits after a loss."""
    keeps_early_packets: bool = False
    """Whether a receiver keeps packets that overtake others. `reordering` requires this."""
    limits_window: bool = False
    """Whether the default window is the BDP of the path. Such a small window needs an ACK for each
    packet."""


RECOVERIES: dict[str, Recovery] = {}
"""By name."""


def register(recovery: Recovery) -> None:
    RECOVERIES[recovery.name] = recovery
