"""Victims of congestion spreading: writes and reads, on their virtual lane."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from emu.report.credit_victims import credit_victims
from emu.report.run_view import RunFacts
from emu.spec.model import spec_from_text
from tests.support.sick_fabrics import SICK, facts_of
from tests.support.synthetic import record, run

WRITES = SICK["victims of congestion spreading"]
READS = WRITES.replace(
    "pattern: incast, from: [h3, h4, h6, h7, h8], to: h1, op: write",
    "pattern: outcast, from: h1, to: [h3, h4, h6, h7, h8], op: read",
).replace("from: h5, to: h2, op: write", "from: h2, to: h5, op: read")


def test_the_responder_of_a_read_waits_for_credit(tmp_path: Path) -> None:
    """Reads and writes of the same bytes have the same victim and the same working fix."""
    reads = facts_of(READS, tmp_path / "reads")
    writes = facts_of(WRITES, tmp_path / "writes")
    found = [credit_victims(own) for own in (reads, writes)]
    assert found[0]
    assert found[1]
    assert found[0].evidence == found[1].evidence
    assert found[0].settings == ("switches.credits.vls=2", "hosts.nodes.h5.nic.sl=1")
    cured = facts_of(READS, tmp_path / "cured", found[0].settings)
    assert cured.flows[-1].goodput_bps > 4 * reads.flows[-1].goodput_bps


def test_more_lanes_separate_service_levels(tmp_path: Path) -> None:
    """The spec's service levels differ but share a lane."""
    text = WRITES.replace("from: h5, to: h2, op: write", "from: h5, to: h2, priority: 3, op: write")
    sick = facts_of(text, tmp_path / "sick")
    found = credit_victims(sick)
    assert found
    assert "virtual lane 0, which service levels 0 and 3 share" in found.evidence
    assert found.settings == ("switches.credits.vls=2",)
    cured = facts_of(text, tmp_path / "cured", found.settings)
    assert credit_victims(cured) is None
    assert cured.flows[-1].goodput_bps > 4 * sick.flows[-1].goodput_bps


LANES = """
fabric: ib
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 4}
switches: {credits: {vls: VLS}}
traffic:
  - {name: root, pattern: pair, from: h6, to: h1, size: 4MB, priority: 0}
  - {name: victim, pattern: pair, from: h5, to: h2, size: 1MB, priority: 1}
"""
END_NS = 340_000
"""End of 4 MB at 100 Gbit/s. The cable to h1 is full until then."""


def on_lanes(vls: int, waited: dict[str, int], ports: int = 1) -> RunFacts:
    """A run in which both flows take equally long.

    `waited` are h5's lane counters; `ports` ports waited.
    """
    spec = spec_from_text(LANES.replace("VLS", str(vls)).encode(), source="lanes.emu.yml")
    names = ["h5:leaf2", "leaf2:spine1", "spine1:leaf1"][:ports]
    made = record(
        spec,
        ends_ns={"root": END_NS, "victim": END_NS},
        waiting=dict.fromkeys(names, 0.5),
        hosts={"h5": waited},
    )
    fast = replace(made.series, tx_bytes=made.series.tx_bytes.copy())
    between = [fast.ports.index(name) for name in ("leaf2:spine1", "spine1:leaf1")]
    fast.tx_bytes[:, between] //= 2  # so that no port between switches is full
    return run(replace(made, series=fast), spec)


WAITED = 170_000


@pytest.mark.parametrize(
    ("vls", "counter", "is_victim"),
    [
        (1, "PortXmitWait_VL0", True),
        (2, "PortXmitWait_VL1", False),
        (2, "PortXmitWait_VL0", False),
    ],
    ids=["one lane for both", "another lane than the root", "another lane waited"],
)
def test_a_victim_shares_its_lane_with_the_root(vls: int, counter: str, *, is_victim: bool) -> None:
    assert bool(credit_victims(on_lanes(vls, {counter: WAITED}))) == is_victim


@pytest.mark.parametrize(("ports", "words"), [(1, ": 1 port waited"), (3, ": 3 ports waited")])
def test_the_evidence_counts_the_ports_that_waited(ports: int, words: str) -> None:
    """The count includes the victim's own port, and the evidence names the shared lane."""
    found = credit_victims(on_lanes(1, {"PortXmitWait_VL0": WAITED}, ports))
    assert found
    assert words in found.evidence
    assert "over virtual lane 0, which service levels 0 and 1 share" in found.evidence
    assert found.evidence.startswith(
        "1 of 2 flows waited for credit though more than half of its receiver's cable was free"
    )


def test_the_fix_changes_the_entrys_own_service_level(tmp_path: Path) -> None:
    """The service level of the NIC has no effect on an entry with its own."""
    text = WRITES.replace("from: h5, to: h2, op: write", "from: h5, to: h2, priority: 0, op: write")
    found = credit_victims(facts_of(text, tmp_path))
    assert found
    assert found.settings == ("switches.credits.vls=2", "traffic.victim.priority=1")


def test_no_lane_is_named_if_path_records_set_the_levels() -> None:
    """A spec does not contain these levels, so the port's whole wait counts."""
    own = on_lanes(2, {"PortXmitWait": WAITED, "PortXmitWait_VL1": WAITED})
    subnet = own.spec.subnet.model_copy(update={"engine": "dfsssp"})
    found = credit_victims(replace(own, spec=own.spec.model_copy(update={"subnet": subnet})))
    assert found
    assert "the congestion spread over virtual lanes: 1 port waited" in found.evidence
