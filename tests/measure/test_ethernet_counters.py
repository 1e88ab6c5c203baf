"""A RoCE port's counters under ethtool's names, from a run on the virtual clock."""

from __future__ import annotations

import re

from emu.measure.counters import ethernet_counters
from tests.model.fabrics import ONE_SWITCH, Outcome, outcome_of

INCAST = """
traffic: [{name: incast, pattern: incast, from: h2-h5, to: h1, op: write, size: 400KB}]
"""


def told(outcome: Outcome, port: str) -> dict[str, int]:
    """What pauses did there."""
    counters = ethernet_counters(outcome.ports[port])
    paused = re.compile(r"[rt]x_.*_pause(_duration|_transition)?")
    return {name: count for name, count in counters.items() if paused.fullmatch(name) and count}


def test_a_global_pause_is_counted_once_and_for_no_priority() -> None:
    """Each XON ended one pause, of which no time is lost or counted twice."""
    outcome = outcome_of(ONE_SWITCH + INCAST, "switches.pfc={frames: pause, xoff: 48KB, xon: 24KB}")
    near, far = told(outcome, "s1:h2"), told(outcome, "h2:s1")
    assert set(near) == {"tx_global_pause", "tx_global_pause_duration"}
    assert set(far) == {
        "rx_global_pause",
        "rx_global_pause_duration",
        "rx_global_pause_transition",
    }
    assert near["tx_global_pause"] == 2 * far["rx_global_pause_transition"]
    assert abs(near["tx_global_pause_duration"] - far["rx_global_pause_duration"]) <= 1


def test_pauses_by_priority_leave_the_global_counters_alone() -> None:
    """The same incast under PFC, on the priority of its data."""
    outcome = outcome_of(ONE_SWITCH + INCAST, "switches.pfc={xoff: 48KB, xon: 24KB}")
    assert set(told(outcome, "s1:h2")) == {"tx_prio3_pause", "tx_prio3_pause_duration"}
