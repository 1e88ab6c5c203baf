"""Sentences of a comparison: only what the runs show, with their numbers."""

from __future__ import annotations

from dataclasses import replace

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
