"""A port's counters under the PMA's names, from a run on the virtual clock."""

from __future__ import annotations

from emu.measure.counters import infiniband_counters
from tests.support.small_fabrics import ONE_SWITCH, outcome_of

INCAST = """
traffic:
  - {name: incast, pattern: incast, from: h2-h3, to: h1, op: write, size: 409600}
  - {name: other, pattern: pair, from: h4, to: h5, op: write, size: 409600, priority: 1}
"""
LANES = ("fabric=ib", "switches.credits.vls=2")
PACKETS = 100
FIRST_WORDS, WORDS, ACK_WORDS = (4138 - 2) // 4, (4122 - 2) // 4, (30 - 2) // 4


def counters(name: str) -> dict[str, int]:
    return infiniband_counters(outcome_of(ONE_SWITCH + INCAST, *LANES).ports)[name]


def test_data_is_counted_in_words_from_lrh_to_icrc() -> None:
    """Two messages of 100 packets, the first of each with a RETH; flow-control packets do not count
    as data."""
    own = counters("s1:h1")
    assert own["PortXmitPkts"] == 2 * PACKETS
    assert own["PortXmitData"] == 2 * (FIRST_WORDS + (PACKETS - 1) * WORDS)
    assert own["PortRcvData"] == own["PortRcvPkts"] * ACK_WORDS


def test_xmit_wait_counts_only_missing_credit() -> None:
    """The senders of the incast wait; the port to its receiver, and the other pair, never do."""
    outcome = outcome_of(ONE_SWITCH + INCAST, *LANES)
    waits = {name: sum(raw["xmit_wait"]) for name, raw in outcome.ports.items()}
    assert all(waits[name] > 0 for name in ("h2:s1", "h3:s1") if name in waits)
    assert waits["s1:h1"] == waits["s1:h5"] == 0


def test_lanes_are_counted_separately_if_several() -> None:
    """SL 1 leaves on VL 1; a port with one lane has only the sums."""
    own = counters("s1:h5")
    assert own["PortVLOpPackets1"] == PACKETS
    assert own["PortVLOpData1"] == FIRST_WORDS + (PACKETS - 1) * WORDS
    assert not [name for name in counters("s1:h1") if name.startswith("PortVLOp")]


def test_requested_lanes_are_counted_even_when_unused() -> None:
    """A host's port has the lanes of its switch in every run."""
    ports = outcome_of(ONE_SWITCH + INCAST, *LANES).ports
    own = infiniband_counters(ports, vls=2)["s1:h1"]
    assert (own["PortVLOpPackets0"], own["PortVLOpPackets1"]) == (2 * PACKETS, 0)
    assert (own["PortXmitWait_VL0"], own["PortXmitWait_VL1"]) == (0, 0)
    assert own["PortVLOpData1"] == 0
