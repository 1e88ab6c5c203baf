"""A RoCE port's counters under ethtool's names, from a run on the virtual clock."""

from __future__ import annotations

import re
from pathlib import Path

from emu.measure.counters import ethernet_counters
from emu.runtime.virtual import VirtualRunner
from tests.support.small_fabrics import ONE_SWITCH, Outcome, outcome_of, spec_of

INCAST = """
traffic: [{name: incast, pattern: incast, from: h2-h5, to: h1, op: write, size: 400KB}]
"""


def pause_counters(outcome: Outcome, port: str) -> dict[str, int]:
    """The pause counters of a port that are not zero."""
    counters = ethernet_counters(outcome.ports)[port]
    paused = re.compile(r"[rt]x_.*_pause(_duration|_transition)?")
    return {name: count for name, count in counters.items() if paused.fullmatch(name) and count}


def test_global_pause_is_counted_once_for_no_priority() -> None:
    """Each XON ends one pause, and no pause time is lost or counted twice."""
    outcome = outcome_of(ONE_SWITCH + INCAST, "switches.pfc={frames: pause, xoff: 48KB, xon: 24KB}")
    near, far = pause_counters(outcome, "s1:h2"), pause_counters(outcome, "h2:s1")
    assert set(near) == {"tx_global_pause", "tx_global_pause_duration"}
    assert set(far) == {
        "rx_global_pause",
        "rx_global_pause_duration",
        "rx_global_pause_transition",
    }
    assert near["tx_global_pause"] == 2 * far["rx_global_pause_transition"]
    assert abs(near["tx_global_pause_duration"] - far["rx_global_pause_duration"]) <= 1


def test_pfc_pauses_leave_global_counters_at_zero() -> None:
    """The same incast under PFC, on the priority of its data."""
    outcome = outcome_of(ONE_SWITCH + INCAST, "switches.pfc={xoff: 48KB, xon: 24KB}")
    assert set(pause_counters(outcome, "s1:h2")) == {"tx_prio3_pause", "tx_prio3_pause_duration"}


def test_host_has_every_counter_used_or_not(tmp_path: Path) -> None:
    """For each priority, so that a script finds `rx_prio3_pause` in every run; idle ports of the
    fabric are present, too."""
    spec = spec_of(
        ONE_SWITCH + "traffic: [{name: one, pattern: pair, from: h2, to: h1, size: 4KB}]"
    )
    topology = spec.topology.build()
    recording = VirtualRunner().run(spec, out=tmp_path)
    names = {tuple(own) for own in recording.hosts.values()}
    assert len(names) == 1
    expected = {f"{way}_prio{n}_pause" for way in ("rx", "tx") for n in range(8)}
    assert expected <= set(*names)
    switch_ports = {topology.port_name[port] for port in topology.ports["s1"]}
    assert recording.ports.keys() == switch_ports
