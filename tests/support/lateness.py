"""How far a faithful run on the real clock may be from one on the virtual clock."""

from __future__ import annotations

from emu.measure.recording import Recording


def late_packets(run: Recording) -> float:
    """So many packets' time was the latest frame late.

    A run's verdict allows for one frame in a hundred. What happens at a given time then meets
    so many packets more or less than it would in an orderly queue.
    """
    return run.fidelity.late_max_ns / run.fidelity.budget_ns
