"""Sentences of a comparison: only what the runs show, with their numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emu.measure.recording import Counters
from emu.report.facts import RunFacts
from emu.report.findings import findings
from tests.report.synthetic import INCONCLUSIVE, four_fabrics


def inconclusive(run: RunFacts) -> RunFacts:
    return replace(run, recording=replace(run.recording, fidelity=INCONCLUSIVE))


def test_loss_is_told_with_its_cost() -> None:
    """Who dropped, how much, what was sent again, and who did not."""
    (loss, *_) = findings(four_fabrics())
    assert loss == (
        "Loss: roce-lossy dropped 312 packets and sent 460 again;"
        " roce-pfc, roce-dcqcn and ib dropped none."
    )


def test_no_loss_is_told_too() -> None:
    """That nothing was lost is a result."""
    (loss, *_) = findings(four_fabrics()[1:])
    assert loss == "Nothing was lost: roce-pfc, roce-dcqcn and ib dropped no packet."


def with_counts(run: RunFacts, totals: Counters, hosts: dict[str, Counters]) -> RunFacts:
    recording = run.recording
    own = replace(recording, totals=recording.totals | totals, hosts=recording.hosts | hosts)
    return replace(run, recording=own)


@pytest.mark.parametrize("why", ["drops_other", "drops_watchdog"])
def test_packets_that_switches_drop_for_other_reasons_are_lost_too(why: str) -> None:
    """For want of a route, by a watchdog, or after their lifetime at the head of a queue."""
    *_, pfc, _, ib = four_fabrics()
    (loss, *_) = findings([pfc, with_counts(ib, {why: 440}, {})])
    assert loss == "Loss: ib dropped 440 packets and sent 0 again; roce-pfc dropped none."


def test_packets_that_hosts_refuse_for_their_p_keys_are_told() -> None:
    """No switch dropped them, but nobody says that nothing was lost."""
    *_, pfc, _, ib = four_fabrics()
    strangers: dict[str, Counters] = {
        "h3": {"rx_pkey_violations": 1200},
        "h4": {"rx_pkey_violations": 7},
        "h5": {"rx_pkey_violations": 0},
    }
    loss, refused, *_ = findings([pfc, with_counts(ib, {}, strangers)])
    assert loss == "Switches lost nothing: roce-pfc and ib dropped no packet."
    assert refused == "In ib, h3 dropped 1,200 and h4 dropped 7 packets for their P_Keys."


def test_advice_names_the_first_and_the_last() -> None:
    """Which fabric suits each kind of traffic, and how much worse the worst is."""
    *_, incast, victim = findings(four_fabrics())
    assert incast == (
        "For traffic like incast, ib and roce-pfc suit best: over after 596 us to 605 us;"
        " roce-lossy took 900 us, 1.5 times as long."
    )
    assert victim.startswith("For traffic like victim, roce-dcqcn suits best: over after 105 us;")


def test_alike_fabrics_are_not_ranked() -> None:
    """Two runs within two per cent of each other."""
    fabrics = {run.name: run for run in four_fabrics()}
    *_, incast, _ = findings([fabrics["roce-pfc"], fabrics["ib"]])
    assert incast == (
        "For traffic like incast they are alike: over after 596 us to 605 us on each."
    )


def test_nothing_is_concluded_from_an_inconclusive_run() -> None:
    """It is named first and quoted nowhere."""
    lossy, *others = four_fabrics()
    caveat, *rest = findings([inconclusive(lossy), *others])
    assert caveat == ("The machine did not keep up with roce-lossy; nothing is concluded from it.")
    assert not any("roce-lossy" in sentence for sentence in rest)


def test_no_honest_run_no_sentence() -> None:
    """Then there is only the caveat."""
    assert len(findings([inconclusive(run) for run in four_fabrics()])) == 1
