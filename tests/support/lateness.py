"""The tolerance between a faithful run on the real clock and one on the virtual clock."""

from __future__ import annotations

from emu.measure.recording import Recording


def late_packets(run: Recording) -> float:
    """The number of packets that fit into the time by which the latest frame was late.

    A run's verdict allows for one late frame in a hundred. An event at a given time then affects
    that many packets more or less than it would in an orderly queue.
    """
    return run.fidelity.late_max_ns / run.fidelity.budget_ns
